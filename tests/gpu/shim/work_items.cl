/* A launch is one-dimensional here (launches.c). What a kernel asks about its work-item follows from
   the sizes of the launch that the plugin wanted. They lie at this address: local sizes, numbers of
   groups, global sizes and offsets, three of each, and the number of dimensions. */
#define EMULATED_SIZES ((__global const ulong *)0x100000000000ul)
#define EMULATED_SIZE(kind, d, otherwise) ((d) > 2 ? (size_t)(otherwise) : (size_t)EMULATED_SIZES[3 * (kind) + (d)])
__attribute__((overloadable, always_inline)) size_t emulated_place(size_t linear, uint kind, uint d) {
    const size_t x = EMULATED_SIZES[3 * kind], y = EMULATED_SIZES[3 * kind + 1];
    return d == 0 ? linear % x : d == 1 ? linear / x % y : d == 2 ? linear / (x * y) : 0;
}
__attribute__((overloadable, always_inline)) size_t emulated_local_id(uint d) {
    return emulated_place(get_local_id(0), 0, d);
}
__attribute__((overloadable, always_inline)) size_t emulated_group_id(uint d) {
    return emulated_place(get_group_id(0), 1, d);
}
__attribute__((overloadable, always_inline)) size_t emulated_global_id(uint d) {
    return d > 2 ? 0 : emulated_group_id(d) * EMULATED_SIZES[d] + emulated_local_id(d) + EMULATED_SIZES[9 + d];
}
#define get_local_id(d) emulated_local_id(d)
#define get_group_id(d) emulated_group_id(d)
#define get_global_id(d) emulated_global_id(d)
#define get_local_size(d) EMULATED_SIZE(0, d, 1)
#define get_enqueued_local_size(d) EMULATED_SIZE(0, d, 1)
#define get_num_groups(d) EMULATED_SIZE(1, d, 1)
#define get_global_size(d) EMULATED_SIZE(2, d, 1)
#define get_global_offset(d) EMULATED_SIZE(3, d, 0)
#define get_work_dim() ((uint)EMULATED_SIZES[12])
#define reqd_work_group_size(x, y, z)
