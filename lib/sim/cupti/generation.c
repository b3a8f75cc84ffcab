/* Compiled once for each of the two libraries; the only difference between them. */
extern const int sim_cupti_generation;
const int sim_cupti_generation = SIM_CUPTI_GENERATION;
