package mcpserver

func deliveryTools() []*tool {
	return []*tool{
		{
			name: "job_add_wake_target", title: "Be told of a job's events", method: post, path: "/v1/jobs/{job_id}/wake-targets", body: true,
			about: "Have a webhook, a command or a relay told of a job's events.",
			args: []arg{
				jobID,
				{name: "type", required: true, schema: anID, about: "webhook, command or relay"},
				{name: "events", schema: texts, about: "their types"},
				{name: "url", schema: aText, about: "of a webhook"},
				{name: "command", schema: texts, about: "program and arguments of a command; it gets the event on standard input"},
				{name: "secret", schema: aText, about: "of a webhook: whsec_ and base64; left out: one is made and shown once"},
				{name: "max_attempts", schema: `{"type":"integer","minimum":1,"maximum":100}`},
				{name: "retry_delay_seconds", schema: `{"type":"number","minimum":0.001,"maximum":3600}`, about: "before the second attempt; later ones wait longer"},
				{name: "timeout_seconds", schema: `{"type":"number","minimum":0.1,"maximum":60}`, about: "of one attempt"},
				{name: "name", schema: aText},
				{name: "headers", schema: textMap, about: "of a webhook"},
				{name: "max_age_seconds", schema: `{"type":"number","minimum":1,"maximum":2592000}`, about: "after it, what has not arrived is given up"},
				{name: "unordered", schema: aFlag, about: "give up the order of events"},
			},
			hints: hints{destructive: true, openWorld: true}, // a command is any program
		},
		{
			name: "job_deliveries", title: "Deliveries", method: get, path: "/v1/deliveries",
			about: "What was or is to be told to wake targets, newest first.",
			args: []arg{
				{name: "job_id", in: inQuery, schema: anID},
				{name: "target_id", in: inQuery, schema: anID},
				{name: "status", in: inQuery, schema: `{"type":"string","enum":["pending","dispatching","retrying","delivered","dead","dropped","all"],"default":"all"}`},
				{name: "prefix", in: inQuery, schema: anID, about: "those whose id begins so"},
				after, limit,
			},
			hints: hints{readOnly: true, idempotent: true},
		},
		{
			name: "doctor", title: "How Placet stands", run: doctor,
			about: "Whether the daemon is ready and why not, what this connection's token may do, and how many deliveries were given up.",
			hints: hints{readOnly: true, idempotent: true},
		},
	}
}
