/* What is asked of the device: an integrated GPU of a kind that oneDNN does not know.
 *
 * With a kind that oneDNN knows, the GPU plugin would use machine code for it. So the plugin takes
 * its own kernels in OpenCL C everywhere.
 */
#include "shim.h"
#include <CL/cl_ext.h>
#include <string.h>

/* What a current graphics driver of Intel offers and the runtime has. Left out are 64-bit floats,
 * media, and memory of other programs. */
static const char EXTENSIONS[] =
    "cl_khr_byte_addressable_store cl_khr_device_uuid cl_khr_fp16 cl_khr_global_int32_base_atomics "
    "cl_khr_global_int32_extended_atomics cl_khr_icd cl_khr_local_int32_base_atomics "
    "cl_khr_local_int32_extended_atomics cl_intel_subgroups cl_intel_required_subgroup_size "
    "cl_intel_subgroups_short cl_khr_spir cl_khr_subgroups cl_intel_subgroups_char cl_intel_subgroups_long "
    "cl_khr_il_program cl_khr_subgroup_shuffle cl_khr_subgroup_shuffle_relative cl_khr_subgroup_extended_types "
    "cl_khr_subgroup_non_uniform_arithmetic cl_khr_subgroup_non_uniform_vote cl_khr_subgroup_ballot "
    "cl_khr_subgroup_clustered_reduce cl_intel_unified_shared_memory cl_intel_device_attribute_query "
    "cl_khr_int64_base_atomics cl_khr_int64_extended_atomics cl_intel_subgroup_local_block_io "
    "cl_khr_3d_image_writes cl_khr_depth_images cl_khr_image2d_from_buffer ";

/* Queries of Intel's extensions, which not every release of the headers has. */
enum { SUB_GROUP_SIZES = 0x4108, LUID = 0x106D, IP_VERSION = 0x4250, DEVICE_ID, SLICES, SUB_SLICES, UNITS, THREADS, FEATURES };

#define TEXT(text) return answer(text, strlen(text) + 1, size, value, needed)
#define VALUE(type, number)                                      \
    do {                                                         \
        type found = number;                                     \
        return answer(&found, sizeof found, size, value, needed); \
    } while (0)
#define VALUES(type, ...)                                        \
    do {                                                         \
        type found[] = {__VA_ARGS__};                            \
        return answer(found, sizeof found, size, value, needed); \
    } while (0)

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size, void *value, size_t *needed) {
    switch (what) {
    case CL_DEVICE_TYPE: VALUE(cl_device_type, CL_DEVICE_TYPE_GPU);
    case CL_DEVICE_VENDOR_ID: VALUE(cl_uint, 0x8086);
    case CL_DEVICE_VENDOR: TEXT("Intel(R) Corporation");
    case CL_DEVICE_NAME: TEXT("Emulated Intel(R) UHD Graphics");
    case CL_DRIVER_VERSION: TEXT("25.18.33578");
    case CL_DEVICE_VERSION: TEXT("OpenCL 3.0 NEO ");
    case CL_DEVICE_EXTENSIONS: TEXT(EXTENSIONS);
    case CL_DEVICE_MAX_COMPUTE_UNITS: VALUE(cl_uint, 96);
    case CL_DEVICE_MAX_CLOCK_FREQUENCY: VALUE(cl_uint, 1300);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: VALUE(size_t, 512);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: VALUES(size_t, 512, 512, 512);
    case CL_DEVICE_LOCAL_MEM_SIZE: VALUE(cl_ulong, 1 << 16);
    case CL_DEVICE_LOCAL_MEM_TYPE: VALUE(cl_device_local_mem_type, CL_LOCAL);
    case CL_DEVICE_HOST_UNIFIED_MEMORY: VALUE(cl_bool, CL_TRUE);
    case CL_DEVICE_HALF_FP_CONFIG:
        VALUE(cl_device_fp_config, CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_ROUND_TO_ZERO |
                                       CL_FP_ROUND_TO_INF | CL_FP_FMA);
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES: VALUE(cl_uint, 0);
    case SUB_GROUP_SIZES: VALUES(size_t, 8, 16, 32);
    case LUID: VALUES(unsigned char, 0, 0, 0, 0, 0, 0, 0, 0);
    case IP_VERSION: VALUE(cl_uint, 12u << 22 | 40u << 14);
    case DEVICE_ID: VALUE(cl_uint, 0x9a49);
    case SLICES: VALUE(cl_uint, 1);
    case SUB_SLICES: VALUE(cl_uint, 6);
    case UNITS: VALUE(cl_uint, 16);
    case THREADS: VALUE(cl_uint, 7);
    case FEATURES: VALUE(cl_bitfield, 0); /* no products of bytes: those kernels need built-ins of a GPU's compiler */
    default: return runtime.clGetDeviceInfo(device, what, size, value, needed);
    }
}

static cl_int CL_API_CALL device_ids(cl_platform_id platform, cl_device_type type, cl_uint room, cl_device_id *found,
                                     cl_uint *count) {
    if (type != CL_DEVICE_TYPE_ALL && type != CL_DEVICE_TYPE_DEFAULT) {
        if (!(type & CL_DEVICE_TYPE_GPU)) return CL_DEVICE_NOT_FOUND;
        type = CL_DEVICE_TYPE_CPU;
    }
    return runtime.clGetDeviceIDs(platform, type, room, found, count);
}

void take_device_queries(cl_icd_dispatch *table) {
    table->clGetDeviceInfo = device_info;
    table->clGetDeviceIDs = device_ids;
}
