package mcpserver

func callTools() []*tool {
	return []*tool{
		{
			name: "tools_list", title: "Guarded tools", method: get, path: "/v1/tools",
			about: "The tools that tool_call calls: names, what they do, their input schemas, and whether a person is always asked.",
			hints: hints{readOnly: true, idempotent: true},
		},
		{
			name: "tool_call", title: "Call a tool", method: post, path: "/v1/tools/{tool}/call", run: callTool,
			about: "Call one of the tools that people guard. status pending says that a person has to agree first: wait with call_wait. What was approved then runs by itself, exactly as asked, once.",
			args: []arg{
				{name: "tool", in: inPath, required: true, schema: anID, about: "name of the tool, as tools_list tells it"},
				{name: "args", in: inAll, required: true, schema: anObject, about: "its arguments"},
				{name: "run_id", in: inQuery, schema: anID, about: "names the calls whose guards count together"},
				{name: "idempotency_key", in: inKey, schema: anID, about: "the same call with the same key again makes no second call"},
			},
			hints: hints{destructive: true, openWorld: true},
		},
		{
			name: "call_wait", title: "Wait for a call", method: get, path: "/v1/calls/{call_id}", run: waitForCall,
			about: "Wait for a call to end, and return it. result still_waiting says that it has not: call again with wait as returned; result timeout says that the whole time is over.",
			args:  []arg{callID, {name: "wait", in: inQuery, schema: `{"type":"string","maxLength":20,"default":"1h"}`, about: "of the whole wait, at most 1h: 90s, 10m"}},
			hints: hints{readOnly: true, idempotent: true},
		},
		{
			name: "call_withdraw", title: "Take a call back", method: del, path: "/v1/calls/{call_id}", args: []arg{callID},
			about: "Take a pending call back, also one that is approved and was not started.",
			hints: hints{destructive: true},
		},
		{
			name: "approvals_list", title: "Approvals", method: get, path: "/v1/approvals",
			about: "What people were asked to agree to, newest first. An agent sees what it asked for.",
			args: []arg{
				{name: "status", in: inQuery, schema: `{"type":"string","enum":["pending","approved","rejected","expired","withdrawn","superseded","consumed","all"],"default":"pending"}`},
				after, limit,
			},
			hints: hints{readOnly: true, idempotent: true},
		},
	}
}
