/* Launches: every one is made one-dimensional.
 *
 * A GPU forms sub-groups over the work-items of a group in linear order: x, then y, then z. This
 * runtime forms them along x alone. So a group becomes a row, and work_items.cl has macros that give
 * a kernel the three-dimensional places. They read the sizes at a fixed address. Therefore one launch
 * runs at a time, and is waited for.
 */
#define _GNU_SOURCE
#include "shim.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define ADDRESS 0x100000000000ul /* as in work_items.cl */
enum { LOCAL = 0, GROUPS = 3, GLOBAL = 6, OFFSET = 9, DIMENSIONS = 12 };
static unsigned long *sizes;

static cl_int CL_API_CALL launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                                 const size_t *global, const size_t *local, cl_uint waits, const cl_event *events,
                                 cl_event *event) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    size_t wanted[3] = {1, 1, 1}, group[3] = {1, 1, 1};
    for (cl_uint i = 0; i < dimensions; i++) wanted[i] = global[i], group[i] = local ? local[i] : 1;
    if (!local) /* the choice is ours: a power of two along the first axis that has one */
        for (cl_uint i = 0; i < dimensions && group[0] * group[1] * group[2] == 1; i++)
            while (group[i] < 64 && wanted[i] % (2 * group[i]) == 0) group[i] *= 2;
    size_t in_group = group[0] * group[1] * group[2], in_all = wanted[0] * wanted[1] * wanted[2];
    for (int i = 0; i < 3; i++)
        if (wanted[i] % group[i]) return CL_INVALID_WORK_GROUP_SIZE;
    if (waits) runtime.clWaitForEvents(waits, events);
    pthread_mutex_lock(&one_at_a_time);
    for (int i = 0; i < 3; i++) {
        sizes[LOCAL + i] = group[i];
        sizes[GROUPS + i] = wanted[i] / group[i];
        sizes[GLOBAL + i] = wanted[i];
        sizes[OFFSET + i] = offset && i < (int)dimensions ? offset[i] : 0;
    }
    sizes[DIMENSIONS] = dimensions;
    cl_event done = NULL;
    cl_int error = runtime.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &in_all, &in_group, 0, NULL, &done);
    if (!error) runtime.clWaitForEvents(1, &done);
    pthread_mutex_unlock(&one_at_a_time);
    if (!error && event) *event = done;
    else if (!error) runtime.clReleaseEvent(done);
    if (log_level >= 2) {
        char name[256] = "?";
        runtime.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
        log_line(2, "launch %p %s global %zu,%zu,%zu local %zu,%zu,%zu: %d", (void *)kernel, name, wanted[0], wanted[1],
                 wanted[2], group[0], group[1], group[2], error);
    }
    return error;
}

/* For the log alone: the pointers that kernels and copies get. */

static cl_int(CL_API_CALL *set_pointer)(cl_kernel, cl_uint, const void *);
static cl_int CL_API_CALL logged_pointer(cl_kernel kernel, cl_uint index, const void *pointer) {
    log_line(2, "argument %u of %p: %p", index, (void *)kernel, pointer);
    return set_pointer(kernel, index, pointer);
}

static cl_int(CL_API_CALL *copy)(cl_command_queue, cl_bool, void *, const void *, size_t, cl_uint, const cl_event *, cl_event *);
static cl_int CL_API_CALL logged_copy(cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size,
                                      cl_uint waits, const cl_event *events, cl_event *event) {
    log_line(2, "copy of %zu bytes: %p to %p", size, from, to);
    return copy(queue, blocking, to, from, size, waits, events, event);
}

static void *CL_API_CALL extension(cl_platform_id platform, const char *name) {
    void *found = runtime.clGetExtensionFunctionAddressForPlatform(platform, name);
    if (!found || log_level < 2) return found;
    if (!strcmp(name, "clSetKernelArgMemPointerINTEL")) {
        set_pointer = found;
        return (void *)logged_pointer;
    }
    if (!strcmp(name, "clEnqueueMemcpyINTEL")) {
        copy = found;
        return (void *)logged_copy;
    }
    return found;
}

int take_launches(cl_icd_dispatch *table) {
    sizes = mmap((void *)ADDRESS, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (sizes != (void *)ADDRESS) {
        fprintf(stderr, "[emulated GPU] there is no room at %#lx\n", ADDRESS);
        return 0;
    }
    table->clEnqueueNDRangeKernel = launch;
    table->clGetExtensionFunctionAddressForPlatform = extension;
    return 1;
}
