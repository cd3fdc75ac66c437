/* What differs between releases of HDF5: the only place that says so. Included by library.h.
 *
 * The connector is compiled once, with the headers of 1.14 or of 2.x, and serves every library from 1.14.0 to 2.2. What
 * not all of them have, or have in another shape, is here by hand: table.py leaves every name alone that this file
 * mentions. Run with: 1.14.2, 1.14.4, 1.14.5, 1.14.6, 2.0.0 and 2.2.0.
 */
#ifndef COW_LIBRARY_VERSIONS_H
#define COW_LIBRARY_VERSIONS_H

#include <hdf5.h>

#include <stdbool.h>

/* What stands in front of each type and property list class. In HDF5 2 it looks at variables that 1.14 does not have. */
#undef H5OPEN
#define H5OPEN cow_library.H5open_(),

/* Pointers that only some libraries fill; NULL elsewhere. The comments name the symbols. More than 20 fields: one for each. */
typedef struct cow_hdf5_versions {
    /* 1.14: what a connector calls when HDF5 has not called it. H5VLstart_lib_state, H5VLfinish_lib_state */
    herr_t (*start_state)(void);
    herr_t (*finish_state)(void);
    /* 2.x: the same, with the state in the caller's hands. H5VLopen_lib_context, H5VLclose_lib_context */
    herr_t (*open_context)(void **context);
    herr_t (*close_context)(void *context);
    /* H5Tdecode of 1.14 trusts what it decodes; H5Tdecode2 of 2.x does not. */
    hid_t (*decode)(const void *bytes);
    hid_t (*decode_2)(const void *bytes, size_t size);
    /* H5Dread_chunk of 1.14 is H5Dread_chunk1 in 2.x, where a library may have been built without it; H5Dread_chunk2. */
    herr_t (*read_chunk)(hid_t dataset, hid_t dxpl, const hsize_t *offset, uint32_t *filters, void *bytes);
    herr_t (*read_chunk_2)(hid_t dataset, hid_t dxpl, const hsize_t *offset, uint32_t *filters, void *bytes,
                           size_t *size);
    /* Takes an id away and closes nothing: H5I_remove, which is HDF5's own and in all of these libraries. */
    void *(*remove_id)(hid_t id);
    /* From 1.14.3 on file drivers are initialised by a call: H5FDperform_init. */
    hid_t (*perform_init)(hid_t (*initialise)(void));
    /* Only in a parallel library, which is linked with an MPI: H5Pget_fapl_mpio, H5Pset_all_coll_metadata_ops, and
     * MPI_Comm_split, MPI_Comm_size and MPI_Comm_free, whose communicators are pointers in Open MPI, which has
     * ompi_mpi_comm_null, and numbers elsewhere. */
    herr_t (*get_fapl_mpio)(hid_t fapl, void *communicator, void *info);
    herr_t (*set_collective_metadata)(hid_t list, hbool_t collective);
    void *split, *size, *free;
    const void *null_pointer;
} cow_hdf5_versions;

/* The file drivers that h5cow knows by name. */
typedef enum cow_hdf5_driver {
    COW_VFD_SEC2,
    COW_VFD_CORE,
    COW_VFD_FAMILY,
    COW_VFD_MULTI,
    COW_VFD_LOG,
    COW_VFD_STDIO,
    COW_VFD_SPLITTER,
    COW_VFD_ONION,
    COW_VFD_DIRECT,
    COW_VFD_MPIO,
    COW_VFDS,
} cow_hdf5_driver;

/* How a library tells a driver's id: H5FD_core_init() and so on in 1.14, H5FD_CORE_id_g in 2.x. */
typedef struct cow_hdf5_driver_symbols {
    hid_t (*initialise)(void);
    const hid_t *id;
} cow_hdf5_driver_symbols;

/* The arguments of H5VL_NATIVE_DATASET_CHUNK_READ and _WRITE, as 1.14 and as 2.x lays them out. Those of HDF5's headers
 * are of one of them only, and are not used. */
typedef struct cow_chunk_read_1 {
    const hsize_t *offset;
    uint32_t filters;
    void *bytes;
} cow_chunk_read_1;

typedef struct cow_chunk_read_2 {
    const hsize_t *offset;
    uint32_t filters;
    void *bytes;
    size_t *size; /* of the buffer; becomes that of the chunk. NULL: not asked for */
} cow_chunk_read_2;

typedef struct cow_chunk_write_1 {
    const hsize_t *offset;
    uint32_t filters;
    uint32_t size;
    const void *bytes;
} cow_chunk_write_1;

typedef struct cow_chunk_write_2 {
    const hsize_t *offset;
    uint32_t filters;
    size_t size;
    const void *bytes;
} cow_chunk_write_2;

#endif
