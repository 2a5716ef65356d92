package mcpserver

const jobStatus = `{"type":"string","enum":["queued","launching","running","completed","failed","timeout","cancelled","orphaned"]}`

// whichJobs narrow a list of jobs down.
func whichJobs() []arg {
	return []arg{
		{name: "status", in: inQuery, schema: jobStatus},
		{name: "name", in: inQuery, schema: anID},
		{name: "tag", in: inQuery, schema: anID},
		{name: "prefix", in: inQuery, schema: anID, about: "those whose id begins so"},
		limit,
	}
}

func jobTools() []*tool {
	return []*tool{
		{
			name: "job_start", title: "Start a job", method: post, path: "/v1/jobs", body: true, run: startJob,
			about: "Start a command that goes on without its client, under supervision. Returns the job; follow it with job_wait, job_tail or job_status.",
			args: []arg{
				{name: "command", required: true, schema: `{"type":["array","string"],"items":{"type":"string"}}`, about: "a list of program and arguments, or one line for the shell"},
				{name: "cwd", schema: aText, about: "the folder to run in, an absolute path; left out: the one in which placet mcp runs, and over HTTP the home of the daemon's user"},
				{name: "env", schema: textMap, about: "its environment; it gets nothing of the daemon's"},
				{name: "secret_env", schema: texts, about: "names in env whose values are masked and never shown"},
				{name: "name", schema: aText},
				{name: "tags", schema: texts},
				{name: "timeout_seconds", schema: someSecs},
				{name: "idempotency_key", schema: aText, about: "the same start with the same key again starts nothing"},
				{name: "wake_targets", schema: `{"type":"array","items":{"type":"object"}}`, about: "who is told of its events, each as job_add_wake_target takes it"},
				{name: "trigger", schema: `{"type":"object","properties":{"job_id":{"type":"string"},"status":{"type":"string"}},"required":["job_id","status"],"additionalProperties":false}`, about: "start only once that job has ended so"},
			},
			hints: hints{destructive: true, openWorld: true},
		},
		{
			name: "job_status", title: "One job", method: get, path: "/v1/jobs/{job_id}", args: []arg{jobID},
			about: "How a job stands: status, times, exit code, the last progress it told, how many questions are open.",
			hints: hints{readOnly: true, idempotent: true},
		},
		{
			name: "job_list", title: "Jobs, newest first", method: get, path: "/v1/jobs", args: append(whichJobs(), after),
			about: "Jobs, newest first. An agent sees those it started.",
			hints: hints{readOnly: true, idempotent: true},
		},
		{
			name: "job_view", title: "Jobs that need somebody", method: get, path: "/v1/jobs", args: whichJobs(), run: viewJobs,
			about: "Jobs by attention, in one page: those with an open question first, then failed and orphaned ones, then running ones, then the rest.",
			hints: hints{readOnly: true, idempotent: true},
		},
		{
			name: "job_tail", title: "Output of a job", method: get, path: "/v1/jobs/{job_id}/tail", run: tailJob,
			about: "A piece of a job's output, in base64, and once more as text where it is text. next is the offset to go on from, end says that there is no more. With follow it waits for more; result still_waiting says that nothing came so far: call again with offset = next.",
			args: []arg{
				jobID,
				{name: "stream", in: inQuery, schema: `{"type":"string","enum":["stdout","stderr"],"default":"stdout"}`},
				{name: "offset", in: inQuery, schema: `{"type":"integer","minimum":0}`},
				{name: "max_bytes", in: inQuery, schema: `{"type":"integer","minimum":1,"maximum":1048576,"default":65536}`},
				{name: "follow", in: inQuery, schema: aFlag, about: "wait for more where there is none yet"},
			},
			hints: hints{readOnly: true, idempotent: true},
		},
		{
			name: "job_events", title: "Events of a job", method: get, path: "/v1/jobs/{job_id}/events",
			about: "A page of a job's events, oldest first, with the cursor to go on from.",
			args: []arg{
				jobID,
				{name: "after", in: inQuery, schema: aCursor, about: "a cursor"},
				{name: "limit", in: inQuery, schema: `{"type":"integer","minimum":1,"maximum":1000,"default":100}`},
			},
			hints: hints{readOnly: true, idempotent: true},
		},
		{
			name: "job_wait", title: "Wait for an event of a job", method: post, path: "/v1/jobs/{job_id}/wait", body: true, run: waitForJob,
			about: "Wait for the first event after a cursor that has one of the types, or that settles the question decision_id. result is event, progress, ended, timeout, shutdown, or still_waiting: then call again with after = cursor and timeout_seconds as returned.",
			args: []arg{
				jobID,
				{name: "types", schema: texts, about: "lifecycle types such as completed, failed, decision_resolved, and output:NAME"},
				{name: "decision_id", schema: anID, about: "a question of the job: dec_…"},
				{name: "after", schema: aCursor, about: "a cursor; left out: from the job's first event"},
				{name: "timeout_seconds", schema: `{"type":"integer","minimum":1,"maximum":86400,"default":3600}`, about: "of the whole wait"},
				{name: "return_progress", schema: aFlag},
			},
			hints: hints{readOnly: true, idempotent: true},
		},
		{
			name: "job_send", title: "Write to a job", method: post, path: "/v1/jobs/{job_id}/send", body: true,
			about: "Write text, or bytes in base64, to a job's standard input.",
			args: []arg{
				jobID,
				{name: "text", schema: aText},
				{name: "data", schema: aText, about: "instead of text: any bytes, in base64"},
				{name: "eof", schema: aFlag, about: "close it afterwards"},
			},
			hints: hints{destructive: true, openWorld: true},
		},
		{
			name: "job_stop", title: "Stop a job", method: post, path: "/v1/jobs/{job_id}/stop", run: stopJob,
			about: "End a job and all that it started. Repeating it is fine. Returns the job once it is gone; result still_waiting says that it is not yet: call again.",
			args: []arg{
				jobID, by,
				{name: "kill_after_seconds", schema: `{"type":"integer","minimum":1,"maximum":3600,"default":10}`, about: "how long it may take to end by itself"},
			},
			hints: hints{destructive: true, idempotent: true, openWorld: true},
		},
		{
			name: "job_pause", title: "Pause a queued job", method: post, path: "/v1/jobs/{job_id}/pause", args: []arg{jobID, by},
			about: "Keep a queued job from starting.",
			hints: hints{idempotent: true},
		},
		{
			name: "job_resume", title: "Resume a paused job", method: post, path: "/v1/jobs/{job_id}/resume", args: []arg{jobID, by},
			about: "Let a paused job start.",
			hints: hints{destructive: true, idempotent: true, openWorld: true},
		},
		{
			name: "job_cleanup", title: "Delete old jobs", method: post, path: "/v1/jobs/cleanup", body: true,
			about: "Delete jobs that ended long ago, with their events, questions and logs. Needs scope operator. Try it with dry_run first.",
			args: []arg{
				{name: "older_than_seconds", required: true, schema: `{"type":"integer","minimum":0,"maximum":315360000}`},
				{name: "dry_run", schema: aFlag, about: "only tell which would go"},
			},
			hints: hints{destructive: true, idempotent: true},
		},
	}
}
