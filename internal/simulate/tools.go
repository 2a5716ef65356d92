package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Names of tools.
const (
	pay   = "pay"   // has an effect
	slow  = "slow"  // has one, and takes so long that its daemon may not live to see its end
	fail  = "fail"  // has one, and then says that it failed
	vague = "vague" // has one, and then nobody knows how it went
	keyed = "keyed" // may be repeated under its call's id
)

var toolNames = []string{pay, slow, fail, vague, keyed}

// scripts are what the tools do after they have written to the witness file.
var scripts = map[string]string{
	pay:   `echo '{"ok":true}'`,
	slow:  `sleep 2; echo '{"ok":true}'`,
	fail:  `echo "no" >&2; exit 3`,
	vague: ``,
	keyed: `sleep 0.5; echo '{"ok":true}'`,
}

// witness is one write of one line, which no other process's can come between: the file
// is opened for appending, and printf is the shell's own.
const witness = `#!/bin/sh
cat >/dev/null
printf '%%s %%s %s\n' "$PLACET_CALL_ID" "$PLACET_ATTEMPT" >>%s
%s
`

// agent asks for a tool until it has had two steps.
const agent = `#!/bin/sh
case "$(cat)" in
*'"step_count":1,'*) echo '{"kind":"tool_call","tool":"pay","args":{"n":1,"ask":true}}' ;;
*'"step_count":2,'*) echo '{"kind":"tool_call","tool":"keyed","args":{"n":2,"ask":false}}' ;;
*) echo '{"kind":"complete","result":{"done":true}}' ;;
esac
`

const rules = `agents:
  clerk: {exec: [./agent.sh]}
rules:
  - {name: free, when: 'args.ask == false', outcome: allow}
  - {name: brief, when: 'has(args.brief) && args.brief', outcome: require_approval, expires_in: 2s, grant_expires_in: 2s}
  - {name: ask, when: 'true', outcome: require_approval, expires_in: 1h, grant_expires_in: 1h}
`

// writeTools writes the configuration that all daemons have, and returns its path and the
// witness file's.
func writeTools(t testing.TB, dir string) (conf, seen string) {
	t.Helper()
	seen = filepath.Join(dir, "witness")
	var y strings.Builder
	y.WriteString("tools:\n")
	for _, name := range toolNames {
		put(t, filepath.Join(dir, name+".sh"), fmt.Sprintf(witness, name, seen, scripts[name]))
		fmt.Fprintf(&y, "  - {name: %s, description: A tool., side_effect: remote_mutation, timeout: 20s, exec: [./%s.sh],\n"+
			"     input_schema: {type: object, required: [n, ask], properties: {n: {type: integer}, ask: {type: boolean}, brief: {type: boolean}}}", name, name)
		if name == keyed {
			y.WriteString(", idempotency: call_id")
		}
		y.WriteString("}\n")
	}
	put(t, filepath.Join(dir, "agent.sh"), agent)
	put(t, seen, "")
	conf = filepath.Join(dir, "placet.yaml")
	put(t, conf, y.String()+rules)
	return conf, seen
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // scripts are run
		t.Fatal(err)
	}
}
