/*
 * The members of a result and of a run that a digest keeps, with their numbers.
 * tests/unit/digest/test_kept.c fails if a struct has a member without a row.
 */
#include "digest/kept.h"

#define AT(m) .offset = offsetof(S, m)
/* clang-format off */
#define FORM(x) _Generic((x), \
	bool: TFH_KEPT_NUMBER, char: TFH_KEPT_NUMBER, \
	uint16_t: TFH_KEPT_NUMBER, uint32_t: TFH_KEPT_NUMBER, uint64_t: TFH_KEPT_NUMBER, \
	int32_t: TFH_KEPT_SIGNED, int64_t: TFH_KEPT_SIGNED, \
	float: TFH_KEPT_REAL, double: TFH_KEPT_REAL)
/* clang-format on */
#define OF(m) ((S *)0)->m
#define ELEMENTS(m) (sizeof(OF(m)) / sizeof(OF(m)[0]))
/* N: a number, real or bool. B: one from 0 to `top`, whether its type is signed or not. A: an array
 * of them. */
#define B(nr, m, top)                                                                              \
	{                                                                                          \
		.number = (nr), AT(m), .form = (top) ? TFH_KEPT_NUMBER : FORM(OF(m)),              \
		.size = sizeof(OF(m)), .count = 1, .most = (top)                                   \
	}
#define N(nr, m) B(nr, m, _Generic(OF(m), bool : 1, default : 0))
#define A(nr, m)                                                                                   \
	{                                                                                          \
		.number = (nr), AT(m), .form = FORM(OF(m)[0]), .size = sizeof(OF(m)[0]),           \
		.count = ELEMENTS(m)                                                               \
	}
/* V: a member of a vocabulary of `top`, or none. W: one that cannot be none.
 * VA: an array of the latter. */
#define MEMBER(nr, m, top, none)                                                                   \
	{                                                                                          \
		.number = (nr), AT(m), .form = TFH_KEPT_MEMBER, .size = sizeof(OF(m)), .count = 1, \
		.most = (top), .maybe_none = (none)                                                \
	}
#define V(nr, m, top) MEMBER(nr, m, top, true)
#define W(nr, m, top) MEMBER(nr, m, top, false)
#define VA(nr, m, top)                                                                             \
	{                                                                                          \
		.number = (nr), AT(m), .form = TFH_KEPT_MEMBER, .size = sizeof(OF(m)[0]),          \
		.count = ELEMENTS(m), .most = (top)                                                \
	}
/* T: a text. TN: one that may be NULL. */
#define T(nr, m)                                                                                   \
	{                                                                                          \
		.number = (nr), AT(m), .form = TFH_KEPT_TEXT, .size = sizeof(OF(m))                \
	}
#define TN(nr, m)                                                                                  \
	{                                                                                          \
		.number = (nr), AT(m), .form = TFH_KEPT_MAYBE, .size = sizeof(OF(m))               \
	}
/* A struct; an array of them; a list with the member that counts it. */
#define SUB(nr, m, x)                                                                              \
	{                                                                                          \
		.number = (nr), AT(m), .form = TFH_KEPT_STRUCT, .count = 1, .of = &kept_##x        \
	}
#define SUBS(nr, m, x)                                                                             \
	{                                                                                          \
		.number = (nr), AT(m), .form = TFH_KEPT_STRUCT, .count = ELEMENTS(m),              \
		.of = &kept_##x                                                                    \
	}
#define LIST(nr, m, n, x)                                                                          \
	{                                                                                          \
		.number = (nr), AT(m), .form = TFH_KEPT_LIST, .size = sizeof(OF(m)),               \
		.count_offset = offsetof(S, n), .of = &kept_##x                                    \
	}
#define TEXTS(nr, m, n)                                                                            \
	{                                                                                          \
		.number = (nr), AT(m), .form = TFH_KEPT_TEXTS, .size = sizeof(OF(m)),              \
		.count_offset = offsetof(S, n)                                                     \
	}
#define TYPE(x, ...)                                                                               \
	static const struct tfh_kept_field fields_##x[] = {__VA_ARGS__};                           \
	static const struct tfh_kept_type kept_##x = {                                             \
		fields_##x, sizeof(fields_##x) / sizeof(*fields_##x), sizeof(S)}

/* ---- the run ---- */

#define S struct tfh_software
TYPE(software, T(1, name), T(2, version), T(3, path));
#undef S

#define S struct tfh_setting_now
TYPE(setting, T(1, name), T(2, value));
#undef S

#define S struct tfh_device_at
TYPE(device_at, N(1, ordinal), N(2, node), N(3, links), T(4, bus), T(5, pcie), T(6, nic),
     T(8, fabric));
#undef S

#define S struct tfh_process
TYPE(process, T(1, host), T(2, exe), N(3, pid), N(4, ppid), N(5, rank), N(6, world), N(7, start_ns),
     N(8, last_ns), N(9, born_ns), N(10, heard_ns), N(11, events), N(12, dropped),
     N(13, bad_chunks), N(14, tail_bytes), N(15, unnamed), TN(16, no_python), TN(17, torch),
     LIST(18, software, n_software, software), N(19, priced), N(20, clean_end), N(21, live),
     N(22, end_known), V(23, end, TFH_END_COUNT), N(24, end_code), N(25, by_monotonic),
     N(26, has_gpu), N(27, has_tf), N(28, segments), N(29, segments_missing),
     N(30, clock_residual_ns), LIST(31, setting, n_setting, setting), TN(32, bound_cpus),
     TN(33, bound_nodes), TN(34, bound_policy), N(35, local), LIST(36, device, n_device, device_at),
     N(37, has_marks));
#undef S

#define S struct tfh_thread_info
TYPE(thread, N(1, process), N(2, tid), N(3, index), TN(4, name), N(5, timed), N(6, faults_known),
     N(7, switches_known), N(8, run_s), N(9, delay_s), N(10, minor_faults), N(11, major_faults),
     N(12, voluntary_switches), N(13, forced_switches));
#undef S

#define S struct tfh_in_flight
TYPE(flight, T(1, fn), N(2, thread), N(3, open_s), T(4, detail), N(5, handle), N(6, process),
     N(7, begin_ns), N(8, look_ns), N(9, place), N(10, state));
#undef S

#define S struct tfh_meter_line
TYPE(meter, B(1, meter, TFH_METER_COUNT - 1), B(2, value, 1), N(3, device), N(4, mean), N(5, least),
     N(6, most), N(7, time_s), N(8, t0), N(9, width_ns),
     {.number = 10,
      AT(point),
      .form = TFH_KEPT_REALS,
      .size = sizeof(float *),
      .count_offset = offsetof(S, n),
      .most = TFH_METER_POINTS});
#undef S

#define S struct tfh_model_line
TYPE(line, T(1, file), T(2, function), N(3, line), N(4, library));
#undef S

#define S struct tfh_model_frame
TYPE(frame, T(1, function), T(2, module), N(3, offset), N(4, address), T(5, file), N(6, line));
#undef S

#define S struct tfh_known_stack
TYPE(stack, N(1, process), N(2, stack), LIST(3, python, n_python, line),
     LIST(4, native, n_native, frame));
#undef S

#define S struct tfh_known_place
TYPE(place, N(1, process), N(2, place), LIST(3, frame, n_frame, line));
#undef S

#define S struct tfh_known
TYPE(known, LIST(1, stack, n_stack, stack), LIST(2, place, n_place, place));
#undef S

/* ---- parts of the result ---- */

#define S struct tfh_verdict
TYPE(verdict, W(1, cls, TFH_CLASS_COUNT), V(2, cause, TFH_CAUSE_COUNT),
     VA(3, also, TFH_CLASS_COUNT), B(4, n_also, TFH_ALSO), N(5, share),
     W(6, confidence, TFH_CONFIDENCE_COUNT), N(7, tier));
#undef S

#define S struct tfh_recurring
TYPE(recurring, W(1, kind, TFH_SEGMENT_COUNT), N(2, count), N(3, total_s), N(4, blocked_s),
     W(5, cls, TFH_CLASS_COUNT), V(6, cause, TFH_CAUSE_COUNT), N(7, evaluates_s));
#undef S

#define S struct tfh_change
TYPE(change, N(1, step), N(2, at_s), N(3, from_s), N(4, to_s), W(5, part, TFH_PART_COUNT),
     N(6, until), TN(7, file), TN(8, function), N(9, line), N(10, evaluates),
     N(11, until_evaluates));
#undef S

#define S struct tfh_class_count
TYPE(class_count, N(1, count), N(2, time_share), N(3, median_s), N(4, p95_s), A(5, breakdown));
#undef S

#define S struct tfh_steps
TYPE(steps, N(1, count), N(2, warmup), N(3, unclassified), N(4, total), N(5, median_s), N(6, p95_s),
     N(7, total_s), V(8, clock, TFH_STEP_CLOCK_COUNT), TN(9, clock_name), N(10, per_execution),
     SUBS(11, classes, class_count), N(12, rounds), N(13, per_round));
#undef S

#define S struct tfh_share
TYPE(share, N(1, s_per_step), N(2, share));
#undef S

#define S struct tfh_job_stage
TYPE(job_stage, N(1, exposed_s), N(2, hidden_s));
#undef S

#define S struct tfh_whatif
TYPE(whatif, V(1, remove, TFH_REMOVE_COUNT), N(2, step_s), N(3, low_s), N(4, high_s), N(5, floor_s),
     N(6, speedup), N(7, ceiling_speedup), N(8, saved_s), TN(9, no_bound), N(10, about_s));
#undef S

#define S struct tfh_place_gain
TYPE(place_gain, T(1, file), T(2, function), N(3, line), N(4, whole), N(5, s_per_step), N(6, off_s),
     SUB(7, gain, whatif), N(8, first_line), N(9, last_line));
#undef S

#define S struct tfh_segment_sum
TYPE(segment_sum, W(1, kind, TFH_SEGMENT_COUNT), N(2, count), N(3, total_s), N(4, every_steps));
#undef S

#define S struct tfh_part_of_run
TYPE(part_of_run, W(1, kind, TFH_BRANCH_COUNT), N(2, parent), T(3, name), N(4, count), N(5, runs),
     N(6, begin_s), N(7, wall_s), N(8, steps), N(9, steps_s), N(10, compute_s), A(11, cause_s),
     N(12, ends));
#undef S

#define S struct tfh_input_stage
TYPE(input_stage, T(1, name), T(2, prefix), N(3, self_s_per_step), N(4, calls_per_step),
     N(5, capacity_per_s), N(6, parallelism), N(7, async), N(8, guilty), TN(9, file),
     TN(10, function), N(11, line));
#undef S

#define S struct tfh_device_time
TYPE(device_time, N(1, device), N(2, compute_s));
#undef S

#define S struct tfh_kernel
TYPE(kernel, T(1, name), N(2, calls_per_step), N(3, median_s), N(4, s_per_step),
     N(5, share_of_busy));
#undef S

#define S struct tfh_family_time
TYPE(family_time, W(1, family, TFH_FAMILY_COUNT), N(2, kernels), N(3, s_per_step),
     N(4, share_of_busy));
#undef S

#define S struct tfh_transfer
TYPE(transfer, T(1, fn), B(2, dir, TFH_DIR_ANY), N(3, pageable), N(4, calls_per_step),
     N(5, bytes_per_step), N(6, bytes_per_s), N(7, blocking_calls), N(8, calls), T(9, where),
     N(10, stack));
#undef S

#define S struct tfh_quality
TYPE(quality, N(1, events), N(2, dropped), N(3, unnamed), N(4, unattributed_share),
     N(5, overhead_share), N(6, run_delay_share), N(7, crowded), N(8, clean_end), T(9, gpu_times),
     TN(10, graphs), TN(11, clock), N(12, clock_residual_s), N(13, files), N(14, files_complete),
     N(15, holes), TEXTS(16, unhooked_names, unhooked), N(17, cupti_share),
     N(18, device_times_share));
#undef S

#define S struct tfh_last_launch
TYPE(last_launch, N(1, stream), N(2, handle), TN(3, kernel));
#undef S

#define S struct tfh_allocation
TYPE(allocation, T(1, fn), N(2, t), N(3, bytes));
#undef S

#define S struct tfh_failure
TYPE(failure, SUB(1, at, allocation), SUBS(2, before, allocation), B(3, n_before, TFH_HEAP_LAST),
     N(4, in_use));
#undef S

#define S struct tfh_heap_sum
TYPE(heap_sum, N(1, in_use), N(2, peak), N(3, allocations), N(4, failed), N(6, capacity),
     N(7, peak_t), A(8, line), B(9, drawn, TFH_HEAP_POINTS), B(10, n_failure, TFH_HEAP_FAILURES),
     SUBS(11, failure, failure));
#undef S

#define S struct tfh_rank
TYPE(rank, N(1, rank), N(2, process), T(3, host), V(4, cls, TFH_CLASS_COUNT),
     V(5, cause, TFH_CAUSE_COUNT), N(6, tier), N(7, share), N(8, step_s), N(9, steps),
     N(10, all_steps), N(11, exchanges), A(12, breakdown), N(13, jitter_s), N(14, late_s),
     N(15, held_s), N(16, silent_s), N(17, closed), N(18, straggler));
#undef S

#define S struct tfh_kind
TYPE(kind, N(1, launches), N(2, count), N(3, median_s), N(4, time_share));
#undef S

#define S struct tfh_discarded_call
TYPE(discarded_call, T(1, fn), N(2, count), N(3, total_s));
#undef S

#define S struct tfh_discarded_anchor
TYPE(discarded_anchor, N(1, count), N(2, bytes), N(3, total_s));
#undef S

#define S struct tfh_discarded
TYPE(discarded, N(1, start_s), N(2, end_s), N(3, events), N(4, launches), N(5, steps),
     N(6, estimated), N(7, mean_s), N(8, median_s), LIST(9, call, n_call, discarded_call),
     N(10, knows_anchors), SUBS(11, anchor, discarded_anchor));
#undef S

#define S struct tfh_pattern
TYPE(pattern, SUBS(1, kind, kind), B(2, n_kind, TFH_KINDS), N(3, per_update), N(4, inner),
     N(5, recompiles), N(6, recompile_s), N(7, graph_steps), N(8, unloads));
#undef S

#define S struct tfh_supply
TYPE(supply, N(1, period_s), N(2, headroom), N(3, buffer), B(5, basis, TFH_SUPPLY_BURSTS),
     N(6, seen));
#undef S

/* ---- findings ---- */

#define S struct tfh_call_site
TYPE(call_site, T(1, fn), T(2, where), N(3, stack));
#undef S

#define S __typeof__(((struct tfh_code_time *)0)->function[0])
TYPE(code_function, T(1, name), N(2, s_per_step));
#undef S

#define S struct tfh_code_time
TYPE(code_time, SUBS(1, function, code_function), B(2, n, TFH_CODE_FUNCTIONS), N(3, s_per_step));
#undef S

#define S struct tfh_seen_sum
TYPE(seen_sum, A(1, part), N(3, samples));
#undef S

#define S struct tfh_machine_findings
TYPE(machine, N(1, processors), N(2, limit), N(3, busy), N(4, steal), N(5, throttled), N(6, io),
     N(7, memory), N(8, swap), N(9, gpu.lowered_device), A(10, gpu.lowered), N(11, gpu.power),
     N(12, gpu.limit), N(13, gpu.xid_device), N(14, gpu.xids), N(15, gpu.last_xid),
     N(16, gpu.ecc_device), N(17, gpu.ecc), N(18, gpu.processes), N(19, far), N(20, device_node));
#undef S

#define S struct tfh_caller_line
TYPE(caller_line, TN(1, file), TN(2, function), N(3, line), N(4, share));
#undef S

#define S struct tfh_seen_line
TYPE(seen_line, TN(1, file), TN(2, function), N(3, line), TN(4, callee), TN(5, callee_file),
     N(6, callee_line), N(7, s_per_step), N(8, off_s), N(9, of_s), N(10, samples),
     B(11, kind, TFH_LINE_KINDS - 1), TN(12, given), SUB(13, through, caller_line),
     SUBS(14, caller, caller_line), B(15, n_caller, ELEMENTS(caller)), B(16, not_own, 1));
#undef S

#define S struct tfh_copied_again
TYPE(copied_again, B(1, dir, TFH_DIR_ANY), N(2, bytes), N(3, steps), N(4, back));
#undef S

#define S struct tfh_seen_node
TYPE(seen_node, T(1, file), T(2, function), N(3, line), N(4, parent), N(5, s_per_step), N(6, own_s),
     N(7, samples));
#undef S

#define S struct tfh_more_workers
TYPE(more_workers, N(1, from), N(2, to), N(3, low_s), N(4, high_s), N(5, splits));
#undef S

#define S struct tfh_seen_workers
TYPE(seen_workers, N(1, processes), N(2, threads), N(3, samples), N(4, busy), TN(5, line.file),
     TN(6, line.function), N(7, line.line), N(8, line.share), N(9, line.off),
     LIST(10, node, n_node, seen_node), SUB(11, more, more_workers), N(12, runs), N(13, holds));
#undef S

#define S struct tfh_retraced
TYPE(retraced, T(1, name), N(2, variants), N(3, calls));
#undef S

#define S struct tfh_start_line
TYPE(start_line, T(1, file), T(2, function), N(3, line), TN(4, imports), N(5, share),
     N(6, samples));
#undef S

#define S struct tfh_seen_start
TYPE(seen_start, V(1, kind, TFH_BRANCH_COUNT), N(2, wall_s), N(3, samples), A(4, state),
     SUBS(5, line, start_line), B(6, n_line, ELEMENTS(line)), TN(7, why));
#undef S

#define S struct tfh_compiling
TYPE(compiling, A(1, s), N(2, samples), N(3, times), TN(4, file), TN(5, function), N(6, line),
     TN(7, callee_file));
#undef S

#define S struct tfh_sampled_line
TYPE(sampled_line, T(1, file), T(2, function), N(3, line), TN(4, callee), T(5, callee_file),
     N(6, callee_line), N(7, share), N(8, samples), V(9, cause, TFH_CAUSE_COUNT), N(10, state));
#undef S

#define S struct tfh_step_loop
TYPE(step_loop, TN(1, file), T(2, function), N(3, first), N(4, last), N(5, times), N(6, exact),
     N(7, counter));
#undef S

#define S struct tfh_pool_wait
TYPE(pool_wait, TN(1, file), T(2, function), N(3, line), N(4, share));
#undef S

#define S struct tfh_sampled
TYPE(sampled, N(1, samples), N(2, pid), N(3, wall_s), N(4, start_s), A(5, state), N(6, released),
     A(7, cause), SUBS(8, line, sampled_line), B(9, n_line, ELEMENTS(line)), TN(10, file),
     T(11, function), N(12, first), N(13, last), N(14, jax), TN(15, why), N(16, compiles_first),
     SUB(17, loop, step_loop), SUB(18, pool, pool_wait), N(19, traced));
#undef S

#define S struct tfh_computed_line
TYPE(computed_line, TN(1, file), TN(2, function), N(3, line), N(4, s_per_step), N(5, samples),
     N(6, steps));
#undef S

#define S __typeof__(((struct tfh_computed *)0)->part[0])
TYPE(computed_part, N(1, s_per_step), N(2, off_s), N(3, samples));
#undef S

#define S struct tfh_computed
TYPE(computed, SUBS(1, part, computed_part), SUBS(2, forward, computed_line),
     SUBS(3, backward, computed_line), SUBS(4, layer, computed_line), TN(5, function),
     SUBS(6, evaluate, computed_line));
#undef S

#define S struct tfh_contended
TYPE(contended, N(1, share), N(2, s_per_step), N(3, busy), N(4, own));
#undef S

#define S struct tfh_findings
TYPE(findings, N(1, cpu_only), N(2, torch), N(3, imported), N(4, device_times), N(5, input_visible),
     N(6, mixed_copies), N(7, queued_functions), A(8, cause_s), SUB(9, retraced, retraced),
     N(10, kernel_share), V(11, input_cause, TFH_CAUSE_COUNT), N(12, graph_ran), N(13, code_ran),
     SUB(14, seen, seen_sum), SUB(15, line, seen_line), LIST(16, node, n_node, seen_node),
     SUB(17, workers, seen_workers), SUB(18, again, copied_again), B(19, serves, TFH_SERVES),
     SUBS(20, start, seen_start), SUB(21, wait, call_site), SUB(22, alloc, call_site),
     SUB(23, load, call_site), SUB(24, pause, call_site), SUB(25, python, code_time),
     SUB(26, other, code_time), N(27, windows), N(28, windows_timed), N(29, holed_steps),
     N(30, lead_s), N(31, before_s), TN(32, no_device_times), TN(33, no_python), N(34, lost_ops),
     N(35, alike_loops), N(36, stall.n), N(37, stall.total_s), V(38, stall.most, TFH_PART_COUNT),
     N(39, slow.every), N(40, slow.longer_s), N(41, slow.share), V(42, slow.part, TFH_PART_COUNT),
     N(43, fault.pages), N(44, fault.cost_s), SUB(45, machine, machine), N(46, priced),
     N(47, others_compute_s), N(48, pid), N(49, unjudged), SUB(50, contended, contended),
     SUB(51, verdict, code_time), N(52, functions), N(53, graphs), N(54, calls_back),
     SUB(55, compiling, compiling), N(56, in_turn), N(57, supposed), N(58, devices_turn),
     N(59, replays), N(60, threads_turn), SUB(61, before, call_site), N(62, slow.n),
     TN(63, slow.file), TN(64, slow.function), N(65, slow.line), N(66, alike), N(67, around),
     SUB(68, sampled, sampled), N(69, asker_works), N(70, uncached_s), N(71, restarts),
     N(72, copies_held), SUB(73, computed, computed), N(74, made_anew), N(75, unnumbered),
     N(77, host_guessed), SUB(79, new_pool, seen_line), N(80, both_s));
#undef S

#define S struct tfh_generation
TYPE(generation, N(1, ranks), N(2, seen), N(3, begin_s), N(4, end_s), N(5, judged), N(6, failed),
     N(7, process), N(8, rank), T(9, host), N(10, died_s), N(11, seen_s), TN(12, file),
     TN(13, function), N(14, line));
#undef S

/* ---- the whole ---- */

#define S struct tfh_result
TYPE(result, A(1, startup), SUB(2, pattern, pattern), SUB(3, supply, supply), N(4, process),
     N(5, ranks), N(6, ranks_seen), N(7, hosts), V(8, end, TFH_END_COUNT), N(9, end_code),
     SUBS(10, last, last_launch), B(11, n_last, TFH_LAST_SHOWN), A(12, xprof),
     SUB(13, heap, heap_sum), LIST(14, rank, n_rank, rank), SUB(15, verdict, verdict),
     SUB(16, steady, verdict), SUBS(17, recurring, recurring),
     B(18, n_recurring, TFH_SEGMENT_COUNT), B(19, lead, TFH_SEGMENT_COUNT),
     SUBS(20, change, change), B(21, n_change, TFH_CHANGES), N(22, recurs_s), SUB(23, steps, steps),
     SUBS(24, breakdown, share), SUBS(25, stages, job_stage), SUBS(26, whatif, whatif),
     B(27, n_whatif, TFH_REMOVE_COUNT), SUBS(28, place, place_gain),
     B(29, n_place, TFH_PREDICT_PLACES), B(30, line_place, TFH_PREDICT_PLACES),
     LIST(31, tree, n_tree, part_of_run), SUBS(32, segments, segment_sum),
     B(33, n_segments, TFH_SEGMENT_COUNT), LIST(34, input, n_input, input_stage),
     LIST(35, kernels, n_kernels, kernel), SUBS(36, families, family_time),
     B(37, n_families, TFH_FAMILY_COUNT), LIST(38, transfers, n_transfers, transfer),
     SUB(39, found, findings), SUB(40, quality, quality),
     LIST(41, discarded, n_discarded, discarded), N(42, exchanges), N(43, jitter_s),
     LIST(45, generation, n_generation, generation), SUB(46, uncrowded, whatif),
     LIST(47, devices, n_devices, device_time));
#undef S

#define S struct tfh_kept
static const struct tfh_kept_field fields[] = {
	SUB(1, r, result),
	B(2, source, TFH_SRC_ASCEND),
	N(3, built),
	T(4, path),
	T(5, host),
	TEXTS(6, argv, argc),
	N(7, start_realtime),
	N(8, wall),
	N(9, end_ns),
	LIST(10, process, n_process, process),
	LIST(11, thread, n_thread, thread),
	LIST(12, flight, n_flight, flight),
	LIST(13, meter, n_meter, meter),
	TEXTS(14, unreadable, n_unreadable),
	SUB(15, known, known),
};
const struct tfh_kept_type tfh_kept_type = {fields, sizeof(fields) / sizeof(*fields), sizeof(S)};
#undef S
