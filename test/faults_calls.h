/* The HDF5 calls of a program under test, each announced and its result looked at: put before the program's source with
 * the compiler's -include. See "calls of the program" in faults.h. */
#ifndef FAULTS_CALLS_H
#define FAULTS_CALLS_H

#include "faults.h"

#include "h5cow.h"

#include <hdf5.h>

#define FAULTS_CALL(kind, id, name, call) (faults_before(kind, id, name) ? faults_after((int64_t)(call)) : -1)
#define FAULTS_WORK(name, call)           FAULTS_CALL(FAULTS_WORKS, -1, name, call)
#define FAULTS_CLOSE(id, name, call)      FAULTS_CALL(FAULTS_CLOSES, id, name, call)

#define H5Fcreate(...)         FAULTS_WORK("H5Fcreate", H5Fcreate(__VA_ARGS__))
#define H5Fopen(...)           FAULTS_WORK("H5Fopen", H5Fopen(__VA_ARGS__))
#define H5Fflush(...)          FAULTS_CALL(FAULTS_FLUSHES, -1, "H5Fflush", H5Fflush(__VA_ARGS__))
#define h5cow_commit(...)      FAULTS_CALL(FAULTS_FLUSHES, -1, "h5cow_commit", h5cow_commit(__VA_ARGS__))
#define h5cow_describe(...)    FAULTS_WORK("h5cow_describe", h5cow_describe(__VA_ARGS__))
#define h5cow_versions(...)    FAULTS_WORK("h5cow_versions", h5cow_versions(__VA_ARGS__))
#define h5cow_abort(id)        FAULTS_WORK("h5cow_abort", h5cow_abort(id))
#define h5cow_restore(...)     FAULTS_WORK("h5cow_restore", h5cow_restore(__VA_ARGS__))
#define h5cow_tag(...)         FAULTS_CALL(FAULTS_FLUSHES, -1, "h5cow_tag", h5cow_tag(__VA_ARGS__))
#define h5cow_untag(...)       FAULTS_CALL(FAULTS_FLUSHES, -1, "h5cow_untag", h5cow_untag(__VA_ARGS__))
#define h5cow_set_message(...) FAULTS_CALL(FAULTS_FLUSHES, -1, "h5cow_set_message", h5cow_set_message(__VA_ARGS__))
#define h5cow_forget(...)      FAULTS_CALL(FAULTS_FLUSHES, -1, "h5cow_forget", h5cow_forget(__VA_ARGS__))
#define h5cow_collect(...)     FAULTS_CALL(FAULTS_FLUSHES, -1, "h5cow_collect", h5cow_collect(__VA_ARGS__))
#define H5Fclose(id)           FAULTS_CALL(FAULTS_CLOSES_FILE, id, "H5Fclose", H5Fclose(id))
#define H5Gcreate2(...)        FAULTS_WORK("H5Gcreate", H5Gcreate2(__VA_ARGS__))
#define H5Gclose(id)           FAULTS_CLOSE(id, "H5Gclose", H5Gclose(id))
#define H5Dcreate2(...)        FAULTS_WORK("H5Dcreate", H5Dcreate2(__VA_ARGS__))
#define H5Dopen2(...)          FAULTS_WORK("H5Dopen", H5Dopen2(__VA_ARGS__))
#define H5Dget_space(id)       FAULTS_WORK("H5Dget_space", H5Dget_space(id))
#define H5Dget_type(id)        FAULTS_WORK("H5Dget_type", H5Dget_type(id))
#define H5Dread(...)           FAULTS_WORK("H5Dread", H5Dread(__VA_ARGS__))
#define H5Dwrite(...)          FAULTS_WORK("H5Dwrite", H5Dwrite(__VA_ARGS__))
#define H5Dset_extent(...)     FAULTS_WORK("H5Dset_extent", H5Dset_extent(__VA_ARGS__))
#define H5Dclose(id)           FAULTS_CLOSE(id, "H5Dclose", H5Dclose(id))
#define H5Oopen(...)           FAULTS_WORK("H5Oopen", H5Oopen(__VA_ARGS__))
#define H5Oclose(id)           FAULTS_CLOSE(id, "H5Oclose", H5Oclose(id))
#define H5Ocopy(...)           FAULTS_WORK("H5Ocopy", H5Ocopy(__VA_ARGS__))
#define H5Aopen(...)           FAULTS_WORK("H5Aopen", H5Aopen(__VA_ARGS__))
#define H5Aget_space(id)       FAULTS_WORK("H5Aget_space", H5Aget_space(id))
#define H5Aget_type(id)        FAULTS_WORK("H5Aget_type", H5Aget_type(id))
#define H5Aread(...)           FAULTS_WORK("H5Aread", H5Aread(__VA_ARGS__))
#define H5Aiterate2(...)       FAULTS_WORK("H5Aiterate", H5Aiterate2(__VA_ARGS__))
#define H5Ovisit3(...)         FAULTS_WORK("H5Ovisit", H5Ovisit3(__VA_ARGS__))
#define H5Acreate2(...)        FAULTS_WORK("H5Acreate", H5Acreate2(__VA_ARGS__))
#define H5Awrite(...)          FAULTS_WORK("H5Awrite", H5Awrite(__VA_ARGS__))
#define H5Aclose(id)           FAULTS_CLOSE(id, "H5Aclose", H5Aclose(id))
#define H5Adelete_by_name(...) FAULTS_WORK("H5Adelete", H5Adelete_by_name(__VA_ARGS__))
#define H5Ldelete(...)         FAULTS_WORK("H5Ldelete", H5Ldelete(__VA_ARGS__))
#define H5Lmove(...)           FAULTS_WORK("H5Lmove", H5Lmove(__VA_ARGS__))
#define H5Lcreate_hard(...)    FAULTS_WORK("H5Lcreate_hard", H5Lcreate_hard(__VA_ARGS__))
#define H5Lcreate_soft(...)    FAULTS_WORK("H5Lcreate_soft", H5Lcreate_soft(__VA_ARGS__))

#endif
