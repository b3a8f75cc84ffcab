-- View: what the runs lost, with what the runs are sorted by. Rows of kind 'cause' add up; those of kind 'line' are the
-- same time again, by line of the program.
SELECT l.run, l.kind, l.cause, l.file, l.line, l.function, l.blocked_gpu_s, l.gain_gpu_s, l.gain_low_gpu_s, l.gain_high_gpu_s,
       r.team, r.job, r.framework, r.image, r.confidence
FROM lake_losses AS l JOIN runs AS r ON l.run = r.run AND l.batch = r.batch
