package mcpserver

func decisionTools() []*tool {
	return []*tool{
		{
			name: "job_request_decision", title: "Ask people", method: post, path: "/v1/jobs/{job_id}/decision", body: true,
			about: "Ask people something for a job. Returns at once with the open question; wait for the answer with job_wait, decision_id and the cursor as after.",
			args: []arg{
				jobID,
				{name: "prompt", required: true, schema: `{"type":"string","minLength":1,"maxLength":10000}`},
				{name: "options", schema: `{"type":"array","items":{"type":"string","minLength":1,"maxLength":200},"minItems":1,"maxItems":50}`, about: "approve and deny where they are left out"},
				{name: "timeout_seconds", schema: someSecs, about: "after which it expires; left out: never"},
				{name: "form", schema: anObject, about: "a flat JSON Schema of what else is asked for"},
				{name: "idempotency_key", schema: aText, about: "the same question with the same key again asks nothing"},
			},
		},
		{
			name: "job_withdraw_decision", title: "Take a question back", method: post, path: "/v1/jobs/{job_id}/decision/{token}/withdraw",
			about: "Take an open question back. Repeating it is fine.",
			args:  []arg{jobID, tokenID, by, noteArg},
			hints: hints{destructive: true, idempotent: true},
		},
		{
			name: "job_decisions", title: "Questions", method: get, path: "/v1/decisions",
			about: "Questions, newest first, with their answers.",
			args: []arg{
				{name: "job_id", in: inQuery, schema: anID},
				{name: "status", in: inQuery, schema: `{"type":"string","enum":["pending","resolved","withdrawn","expired","all"],"default":"all"}`},
				{name: "prefix", in: inQuery, schema: anID, about: "those whose id begins so"},
				after, limit,
			},
			hints: hints{readOnly: true, idempotent: true},
		},
		{
			name: "job_resolve", title: "Answer a question", method: post, path: "/v1/jobs/{job_id}/decision/{token}/resolve", body: true, reviews: true, run: resolve,
			about: "Answer a question that somebody else asked. The same answer again is fine, another one is refused. Without choice the person at this client is shown a form, where the client can do that; whatever they do but answer leaves the question open.",
			args: []arg{
				jobID, tokenID,
				{name: "choice", schema: aText, about: "exactly one of the options, character for character"},
				{name: "input", schema: anObject, about: "what the question's form asks for"},
				by, noteArg,
			},
			hints: hints{destructive: true, idempotent: true, openWorld: true},
		},
	}
}
