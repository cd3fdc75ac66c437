/* Contract: ids.h. */
#include "base/ids.h"

void cow_close_ids(const hid_t ids[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] >= 0)
            switch (H5Iget_type(ids[i])) {
            case H5I_DATATYPE:
                H5Tclose(ids[i]);
                break;
            case H5I_DATASPACE:
                H5Sclose(ids[i]);
                break;
            case H5I_GENPROP_LST:
                H5Pclose(ids[i]);
                break;
            case H5I_DATASET:
                H5Dclose(ids[i]);
                break;
            case H5I_GROUP:
                H5Gclose(ids[i]);
                break;
            case H5I_ATTR:
                H5Aclose(ids[i]);
                break;
            case H5I_FILE:
                H5Fclose(ids[i]);
                break;
            default:
                H5Idec_ref(ids[i]);
            }
}
