package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func unmarshal(b []byte, v any) error { return json.Unmarshal(b, v) }

// inTool is a file whose tool t has some further lines, from line 4 on.
func inTool(lines string) string {
	return "tools:\n  - name: t\n    exec: [sh]\n" + indent(lines)
}

// inRule is a file whose rule r has some further lines, from line 3 on.
func inRule(lines string) string {
	return "rules:\n  - name: r\n" + indent(lines)
}

func indent(lines string) string {
	return "    " + strings.ReplaceAll(lines, "\n", "\n    ") + "\n"
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		line       int
		want       string
	}{
		// The file.
		{"an unknown section", "tool: []", 1, `unknown key "tool" in the file; did you mean "tools"?`},
		{"a key in capitals", "Tools: []", 1, `unknown key "Tools" in the file; did you mean "tools"?`},
		{"mcp servers", "\nmcp: {server: x}", 2, "mcp in the file: tools from MCP servers come later"},
		{"a list at the top", "- a", 1, "the file has to be a mapping of keys to values"},
		{"a text at the top", "hello", 1, "the file has to be a mapping of keys to values"},
		{"broken YAML", "tools:\n  - name: a\n bad", 3, "this is not valid YAML: did not find expected key"},
		{"a tab", "tools:\n\t- name: a", 2, "this is not valid YAML"},
		{"an unclosed bracket", "tools: [a", 1, "this is not valid YAML"},
		{"a second document", "tools: []\n---\nrules: []", 2, "the file has a second document"},
		{"a broken second document", "tools: []\n---\n[", 3, "this is not valid YAML"},
		{"a section twice", "tools: []\nrules: []\ntools: []", 3, `the key "tools" stands twice, first in line 1; remove one`},
		{"invalid UTF-8", "# fine\ntools: [\xff]", 2, "the file is not valid UTF-8"},
		{"an anchor", "tools:\n  - &a {name: x}", 2, "anchors (&) and aliases (*) are not read"},
		{"an alias", "{tools: &t [], rules: *t}", 1, "anchors (&) and aliases (*) are not read"},
		{"a merge key", "tools:\n  - name: x\n    <<: {exec: [sh]}", 3, "merge keys (<<) are not read"},
		{"a tag", "tools: !!seq []", 1, `tags such as "!!seq" are not read`},
		{"an own tag", "guards:\n  cost: !secret 5", 2, `tags such as "!secret" are not read`},
		{"a list as a key", "? [a]\n: b", 1, "a key has to be a text"},
		{"a missing key", "guards:\n  : 5", 2, "this is not valid YAML: did not find expected key"},
		{"a null key", "guards: {? : 5}", 1, "a key is missing before the colon"},
		{"deep nesting", "tools: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), 1, "nested more than 100 deep"},

		// Tools.
		{"tools that are a mapping", "tools: {refund: {}}", 1, "tools has to be a list; begin each item with a dash"},
		{"a tool that is a text", "tools:\n  - refund", 2, "tool 1 has to be a mapping"},
		{"an empty tool", "tools:\n  -", 2, "tool 1 has to be a mapping"},
		{"no name", "tools:\n  - exec: [sh]", 2, "tool 1 has no name; write name:"},
		{"an empty name", "tools:\n  - name:\n    exec: [sh]", 2, "tool 1 has no name"},
		{"a number as a name", "tools:\n  - name: 5\n    exec: [sh]", 2, `the name of tool "5" has to be a text; write it in quotes: "5"`},
		{"a list as a name", "tools:\n  - name: [a]\n    exec: [sh]", 2, "the name of tool 1 has to be a text"},
		{"a name that is not allowed", "tools:\n  - name: a b\n    exec: [sh]", 2, `The tool name "a b" is not allowed`},
		{"a name twice", "tools:\n  - name: a\n    exec: [sh]\n  - name: a\n    exec: [sh]", 4, `another tool (line 2) is named "a"; write a different name`},
		{"an unknown key", inTool("confrim: true"), 4, `unknown key "confrim" in tool "t"; did you mean "confirm"?`},
		{"two letters swapped", inTool("tiemout: 5s"), 4, `unknown key "tiemout" in tool "t"; did you mean "timeout"?`},
		{"a key like none", inTool("colour: red"), 4, `unknown key "colour" in tool "t"; write name, description, input_schema,`},
		{"a key twice", inTool("cost: 1\ncost: 2"), 5, `the key "cost" stands twice, first in line 4; remove one`},
		{"a description that is a number", inTool("description: 7"), 4, `the description of tool "t" has to be a text; write it in quotes: "7"`},
		{"another side effect", inTool("side_effect: remote"), 4, `"remote" is not a value of side_effect of tool "t"; write read_only, local_mutation, remote_mutation or destructive`},
		{"a list as a side effect", inTool("side_effect: [read_only]"), 4, `side_effect of tool "t"; write read_only`},
		{"confirm with yes", inTool("confirm: yes"), 4, `confirm of tool "t" has to be true or false`},
		{"confirm in quotes", inTool(`confirm: "true"`), 4, `confirm of tool "t" has to be true or false`},
		{"cancel_safe with 1", inTool("cancel_safe: 1"), 4, `cancel_safe of tool "t" has to be true or false`},
		{"pin with True", inTool("pin: True"), 4, `pin of tool "t" has to be true or false`},
		{"idempotency with true", inTool("idempotency: true"), 4, `"true" is not a value of idempotency of tool "t"; write call_id`},
		{"a negative cost", inTool("cost: -1"), 4, `cost of tool "t" has to be a whole number, 0 or more`},
		{"a fraction as a cost", inTool("cost: 1.5"), 4, `cost of tool "t" has to be a whole number`},
		{"a cost in quotes", inTool(`cost: "1"`), 4, `cost of tool "t" has to be a whole number`},
		{"a huge cost", inTool("cost: 9223372036854775808"), 4, `cost of tool "t" has to be a whole number`},
		{"a cost in hexadecimal", inTool("cost: 0x10"), 4, `cost of tool "t" has to be a whole number`},

		// Times.
		{"days", inTool("timeout: 90d"), 4, `timeout of tool "t": "90d" has a unit that is not known, since days are not all of one length; write 2160h`},
		{"weeks", inTool("timeout: 2 weeks"), 4, "write 336h"},
		{"no unit", inTool("timeout: 30"), 4, `timeout of tool "t": "30" has no unit; write 30s, 30m or 30h`},
		{"no time", inTool("timeout: soon"), 4, `timeout of tool "t": "soon" is not a time; write one such as 30s`},
		{"months", inTool("timeout: 3mo"), 4, `"3mo" is not a time`},
		{"zero", inTool("timeout: 0s"), 4, "a time has to be above zero"},
		{"negative", inTool("timeout: -5s"), 4, "a time has to be above zero"},
		{"too small", inTool("timeout: 10us"), 4, "a time is in whole milliseconds"},
		{"too long", inTool("timeout: 25h"), 4, `timeout of tool "t" is 25h; at most 24h are allowed`},
		{"far too long", inTool("timeout: 99999999h"), 4, "is not a time"},
		{"a list", inTool("timeout: [5s]"), 4, `timeout of tool "t" has to be a time`},

		// What carries a tool out.
		{"nothing", "tools:\n  - name: t", 2, `tool "t" has nothing that carries it out; write exec: [./program.sh] or http:`},
		{"both", inTool("http: {url: 'http://x.test'}"), 4, `tool "t" has both exec and http; remove one`},
		{"an mcp server", "tools:\n  - name: t\n    mcp: github", 3, `mcp in tool "t": tools from MCP servers come later; until then a tool is carried out by exec or http`},
		{"a program as a text", "tools:\n  - name: t\n    exec: ./ok.sh -v", 3, `exec of tool "t" has to be a list of the program and its arguments`},
		{"no program", "tools:\n  - name: t\n    exec: []", 3, `exec of tool "t" has to be a list`},
		{"an empty program", "tools:\n  - name: t\n    exec: ['']", 3, "exec names no program"},
		{"a null argument", "tools:\n  - name: t\n    exec: [sh, ~]", 3, `element 2 of exec of tool "t" has to be a text`},
		{"a list as an argument", "tools:\n  - name: t\n    exec: [sh, [a]]", 3, `element 2 of exec of tool "t" has to be a text`},
		{"a missing program", "tools:\n  - name: t\n    exec: [./none.sh]", 3, "none.sh\" cannot be used: it does not exist."},
		{"a program that is not executable", "tools:\n  - name: t\n    exec: [./plain.txt]", 3, "is not an executable file. Make it one: chmod +x "},
		{"a folder as a program", "tools:\n  - name: t\n    exec: [./]", 3, `exec of tool "t": The program`},
		{"a program that is not in PATH", "tools:\n  - name: t\n    exec: [no-such-program-here]", 3, `The program "no-such-program-here" is in no folder of PATH.`},
		{"a missing probe", inTool("probe: [./none.sh]"), 4, `probe of tool "t": The program`},
		{"a probe as a text", inTool("probe: ./ok.sh"), 4, `probe of tool "t" has to be a list`},
		{"pin without a program", "tools:\n  - name: t\n    pin: true\n    http: {url: 'http://x.test'}", 3, `pin of tool "t" needs exec`},

		// Schemas.
		{"a schema that is none", inTool("input_schema: {type: objekt}"), 4, `input_schema of tool "t": The schema is not a valid JSON Schema at /type`},
		{"a schema that is a text", inTool("input_schema: object"), 4, `input_schema of tool "t": The schema is not a JSON object.`},
		{"a schema with a bad pattern", inTool("input_schema:\n  properties: {a: {pattern: '(?=x)'}}"), 5, `input_schema of tool "t": The `},
		{"a schema that loads another", inTool("input_schema: {$ref: 'https://x.test/s.json'}"), 4, "none is ever loaded"},
		{"a hexadecimal number", inTool("input_schema:\n  properties:\n    n: {maximum: 0x10}"), 6, `write the number "0x10" as JSON does`},
		{"a number with a leading zero", inTool("input_schema: {maximum: 017}"), 4, `write the number "017" as JSON does`},
		{"infinity", inTool("input_schema: {maximum: .inf}"), 4, `write the number ".inf" as JSON does`},
		{"a number with a bare point", inTool("input_schema: {maximum: .5}"), 4, `write the number ".5" as JSON does`},
		{"a number with underscores", inTool("input_schema: {maximum: 1_000}"), 4, `write the number "1_000" as JSON does`},
		{"another true", inTool("input_schema: {additionalProperties: TRUE}"), 4, `write "TRUE" as true or false`},
		{"a property twice", inTool("input_schema:\n  properties:\n    a: {}\n    a: {}"), 7, `the key "a" stands twice, first in line 6`},

		// HTTP.
		{"no url", "tools:\n  - name: t\n    http: {method: POST}", 3, `http of tool "t" has no url`},
		{"http as a text", "tools:\n  - name: t\n    http: https://x.test", 3, `http of tool "t" has to be a mapping`},
		{"an unknown key of http", "tools:\n  - name: t\n    http:\n      url: http://x.test\n      header: {}", 5, `unknown key "header" in http of tool "t"; did you mean "headers"?`},
		{"another scheme", "tools:\n  - name: t\n    http: {url: 'ftp://x.test'}", 3, "it must start with http:// or https://"},
		{"another method", "tools:\n  - name: t\n    http: {method: post, url: 'http://x.test'}", 3, `The HTTP method "post" is not allowed`},
		{"a variable in the url", "tools:\n  - name: t\n    http: {url: 'http://x.test/${TOKEN}'}", 3, `url in http of tool "t": variables are put into header values only`},
		{"a variable that is not set", "tools:\n  - name: t\n    http:\n      url: http://x.test\n      headers:\n        A: 'Bearer ${NO_TOKEN}'", 6, `the header "A" in http of tool "t" needs the environment variable NO_TOKEN, which is not set`},
		{"a variable that is empty", "tools:\n  - name: t\n    http: {url: 'http://x.test', headers: {A: '${EMPTY}'}}", 3, "needs the environment variable EMPTY, which is empty"},
		{"a variable without a name", "tools:\n  - name: t\n    http: {url: 'http://x.test', headers: {A: '${}'}}", 3, "has a ${ that names no variable; write ${NAME}"},
		{"a variable with an expression", "tools:\n  - name: t\n    http: {url: 'http://x.test', headers: {A: '${TOKEN:-x}'}}", 3, "has a ${ that names no variable"},
		{"a variable that is not closed", "tools:\n  - name: t\n    http: {url: 'http://x.test', headers: {A: '${TOKEN'}}", 3, "has a ${ that names no variable"},
		{"a header that is a number", "tools:\n  - name: t\n    http: {url: 'http://x.test', headers: {A: 987650001234}}", 3, `the header "A" in http of tool "t" has to be a text; write it in quotes`},
		{"headers as a text", "tools:\n  - name: t\n    http: {url: 'http://x.test', headers: 'A: x'}", 3, `headers in http of tool "t" has to be a mapping`},
		{"a header that we set", "tools:\n  - name: t\n    http: {url: 'http://x.test', headers: {idempotency-key: x}}", 3, "The header Idempotency-Key is set by Placet"},
		{"a variable with a line feed", "tools:\n  - name: t\n    http: {url: 'http://x.test', headers: {A: '${BROKEN}'}}", 3, `The value of the header "A" has a control character`},

		// Agents.
		{"agents as a list", "agents: [a]", 1, "agents has to be a mapping"},
		{"an agent as a text", "agents:\n  fixer: ./ok.sh", 2, `agent "fixer" has to be a mapping`},
		{"an agent without a program", "agents:\n  fixer: {}", 2, `agent "fixer" has no program; write exec: [./agent.py]`},
		{"an unknown key of an agent", "agents:\n  fixer: {exec: [sh], env: {}}", 2, `unknown key "env" in agent "fixer"; write exec`},
		{"an agent whose program is missing", "agents:\n  fixer:\n    exec: [./agent.py]", 3, `exec of agent "fixer": The program`},
		{"an agent with a name that is not allowed", "agents:\n  a b: {exec: [sh]}", 2, `the name of agent "a b" is not allowed`},

		// Rules.
		{"rules as a mapping", "rules: {a: {}}", 1, "rules has to be a list"},
		{"a rule as a text", "rules:\n  - allow", 2, "rule 1 has to be a mapping"},
		{"an unknown key of a rule", inRule("if: true\nwhen: true\noutcome: allow"), 3, `unknown key "if" in rule "r"; write name, when`},
		{"a rule without a name", "rules:\n  - when: true\n    outcome: deny", 2, `rule "", name: a rule needs a name`},
		{"a rule without a condition", inRule("outcome: deny"), 2, `rule "r", when: an expression is missing`},
		{"a rule without an outcome", inRule("when: true"), 2, `rule "r" has no outcome; write outcome: allow, require_approval, deny or abort`},
		{"another outcome", inRule("when: true\noutcome: ask"), 4, `"ask" is not a value of outcome of rule "r"; write allow, require_approval, deny or abort`},
		{"a condition that is a list", inRule("when: [a]\noutcome: deny"), 3, `when of rule "r" has to be a text`},
		{"a condition with a colon", inRule("outcome: deny\nwhen: args == {\"a\": 1}"), 4, "a text that has a colon and a space in it needs quotes"},
		{"a condition that begins with !", inRule("outcome: deny\nwhen: !args.ok"), 4, `tags such as "!args.ok" are not read; write a plain value, and a text that begins with ! in quotes`},
		{"a condition that does not compile", inRule("outcome: deny\nwhen: arg.x == 1"), 4, `rule "r", when, column 1: arg is not known; did you mean args?`},
		{"a condition over some lines", inRule("outcome: deny\nwhen: |\n  tool == \"a\" &&\n  foo == 1"), 6, `rule "r", when, column 1: foo is not known`},
		{"a folded condition", inRule("outcome: deny\nwhen: >\n  tool == 'a' &&\n  foo == 1"), 5, `rule "r", when, column 16: foo is not known`},
		{"a presentation that does not compile", inRule("when: true\noutcome: require_approval\npresentation:\n  a: '1'\n  title: '\"x'"), 7, `rule "r", presentation.title, column 1: a text is not closed`},
		{"a presentation as a text", inRule("when: true\noutcome: deny\npresentation: hello"), 5, `presentation of rule "r" has to be a mapping`},
		{"a presentation without an expression", inRule("when: true\noutcome: deny\npresentation: {a: }"), 5, `presentation.a of rule "r" has to be a text`},
		{"other edits", inRule("when: true\noutcome: deny\nedits: no"), 5, `"no" is not a value of edits of rule "r"; write allow or forbid`},
		{"days in a rule", inRule("when: true\noutcome: deny\nexpires_in: 7d"), 5, `expires_in of rule "r": "7d" has a unit that is not known, since days are not all of one length; write 168h`},
		{"no unit in a rule", inRule("when: true\noutcome: deny\ngrant_expires_in: 15"), 5, `grant_expires_in of rule "r": "15" has no unit`},
		{"a reason that is a number", inRule("when: true\noutcome: deny\nreason: 5"), 5, `the reason of rule "r" has to be a text`},
		{"a name of a rule twice", "rules:\n  - {name: r, when: 'true', outcome: deny}\n  - {name: r, when: 'true', outcome: deny}", 3, `rule "r", name: another rule (line 2) has this name`},
		{"allow by a prefix (case 188)", inRule("when: args.cmd.startsWith('git ')\noutcome: allow"), 3, "startsWith looks at a part of the value"},

		// Guards.
		{"guards as a list", "guards: [repeats]", 1, "guards has to be a mapping"},
		{"an unknown guard", "guards:\n  repeat: 3", 2, `unknown key "repeat" in guards; did you mean "repeats"?`},
		{"a guard as a text", "guards:\n  cost: lots", 2, "the guard cost has to be a whole number, 0 or more"},
	}
	env := environment("TOKEN", "s3cret-value", "EMPTY", "", "BROKEN", "s3cret-value\r\nX: y")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := folder(t, tt.text)
			_, err := load(path, env)
			if !errors.Is(err, ErrConfig) {
				t.Fatalf("error %v does not match ErrConfig", err)
			}
			want := fmt.Sprintf("%s:%d: ", path, tt.line)
			if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error\n%v\ndoes not say\n%s%s", err, want, tt.want)
			}
			if n := strings.Count(err.Error(), "\n"); n > 0 {
				t.Errorf("one fault is told in %d lines:\n%v", n+1, err)
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "987650001234") {
				t.Errorf("the error shows a value of the environment: %v", err)
			}
		})
	}
}

// `confirm:` with nothing behind it is no way to write false.
func TestAnEmptyValueSwitchesNothingOff(t *testing.T) {
	t.Parallel()
	tool := []string{"confirm", "pin", "cancel_safe", "idempotency", "cost", "timeout", "side_effect", "input_schema", "probe"}
	rule := []string{"edits", "expires_in", "grant_expires_in", "presentation", "capability"}
	guard := []string{"calls_per_run", "calls_per_minute", "repeats", "cost"}
	try := func(key, empty, text, what string, line int) {
		t.Helper()
		path := folder(t, text)
		want := fmt.Sprintf("%s:%d: %s in %s has no value; write one, or remove the line", path, line, key, what)
		if _, err := Load(path); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:%s: %v, want %s", key, empty, err, want)
		}
	}
	for _, empty := range []string{"", " null", " ~", " # nothing"} {
		for _, key := range tool {
			try(key, empty, inTool(key+":"+empty), `tool "t"`, 4)
		}
		for _, key := range rule {
			try(key, empty, inRule("when: 'true'\noutcome: deny\n"+key+":"+empty), `rule "r"`, 5)
		}
		for _, key := range guard {
			try(key, empty, "guards:\n  "+key+":"+empty+"\n", "guards", 2)
		}
	}
	try("headers", "", "tools:\n  - name: t\n    http:\n      url: https://x.example\n      headers:\n", `http of tool "t"`, 5)
	for _, text := range []string{inTool("description:"), inRule("when: 'true'\noutcome: deny\nreason:\nkind:")} {
		if _, err := Load(folder(t, text)); err != nil {
			t.Error(err)
		}
	}
}

func TestHostileFilesAreBounded(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i)
	}
	fill := func(s string) string { return strings.Repeat(s, maxFile/len(s)) }
	for name, text := range map[string]string{
		"an alias bomb":       bomb,
		"open brackets":       fill("["),
		"open braces":         fill("{"),
		"nested keys":         fill("{a: "),
		"dashes":              fill("- "),
		"question marks":      fill("? "),
		"comments":            fill("#\n"),
		"comments in a list":  "tools:\n" + fill("# c\n- a # c\n")[:maxFile-10],
		"one long text":       "tools: '" + fill("x")[:maxFile-10] + "'",
		"one long key":        fill("x")[:maxFile-10] + ": 1",
		"many keys":           manyKeys(),
		"quotes":              fill("'"),
		"ampersands":          fill("&a "),
		"percent signs":       fill("%YAML 1.1\n"),
		"a deep block":        deepBlock(),
		"many tools":          "tools:\n" + fill("- {name: t, exec: [sh]}\n")[:maxFile-100],
		"many rules":          "rules:\n" + fill("- {name: t, when: x, outcome: deny}\n")[:maxFile-100],
		"a large schema":      inTool("input_schema: {type: object, properties: {" + fill("a: {}, ")[:maxFile-100] + "}}"),
		"literal block":       "tools: |\n" + fill("  x\n")[:maxFile-10],
		"documents":           fill("---\n"),
		"a byte order mark":   "\xff\xfe" + fill("t\x00"),
		"control characters":  fill("\x00"),
		"unfinished mappings": fill("a:\n")[:maxFile-3],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			start := time.Now()
			_, err := parse([]byte(text), DefaultName, filepath.Join(dir, DefaultName), environment())
			if err == nil && name != "comments" {
				t.Error("accepted")
			}
			if err != nil && (!errors.Is(err, ErrConfig) || len(err.Error()) > 16<<10) {
				t.Errorf("%.300v, %d bytes", err, len(err.Error()))
			}
			t.Logf("%v: %.120v", time.Since(start), err)
		})
	}
}

func manyKeys() string {
	var b strings.Builder
	for i := 0; b.Len() < maxFile-20; i++ {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

func deepBlock() string {
	var b strings.Builder
	for i := 0; b.Len() < maxFile-2000; i++ {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.String()
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(full))
	f.Add(Example())
	f.Add([]byte("tools: [{name: a, exec: [sh], input_schema: {maximum: 1e400}}]"))
	f.Add([]byte("a: &a [*a]\n---\n<<: !x {? [b] : c}"))
	f.Add([]byte("rules:\n- name: r\n  when: |\n    tool == 'x'\n  outcome: allow\n"))
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ok.sh"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		f.Fatal(err)
	}
	env := environment("DEPLOY_TOKEN", "s3cret", "TEAM", "x")
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parse(text, DefaultName, filepath.Join(dir, DefaultName), env)
		switch {
		case err != nil && !errors.Is(err, ErrConfig):
			t.Fatalf("%v does not match ErrConfig", err)
		case err != nil && strings.Contains(err.Error(), "s3cret") && !strings.Contains(string(text), "s3cret"):
			t.Fatalf("%v shows a secret", err)
		case err == nil && (c.Tools == nil || c.Policy == nil):
			t.Fatalf("%+v", c)
		}
	})
}
