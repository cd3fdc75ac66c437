/* Contract: with_connector.h. */
#include "with_connector.h"

#include "vol/vol.h"

#include <H5VLnative.h>

hid_t connector_fapl(const char *options)
{
    hid_t id = H5VLregister_connector(&cow_class, H5P_DEFAULT), fapl = H5Pcreate(H5P_FILE_ACCESS);
    void *info = NULL;

    if (id < 0 || fapl < 0 || H5VLconnector_str_to_info(options, id, &info) < 0 || H5Pset_vol(fapl, id, info) < 0) {
        if (fapl >= 0)
            H5Pclose(fapl);
        fapl = H5I_INVALID_HID;
    }
    if (info != NULL)
        H5VLfree_connector_info(id, info);
    if (id >= 0)
        H5VLclose(id); /* the list holds it */
    return fapl;
}

hid_t native_fapl(void)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

    if (fapl >= 0 && H5Pset_vol(fapl, H5VL_NATIVE, NULL) < 0) {
        H5Pclose(fapl);
        fapl = H5I_INVALID_HID;
    }
    return fapl;
}
