-- View: the ranks of the runs. own_s: a step of the rank without what it waits for other ranks.
SELECT k.run, k.rank, k.host, k.steps, k.step_s, k.own_s, r.job, r.gpus
FROM lake_ranks AS k JOIN runs AS r ON k.run = r.run AND k.batch = r.batch
