package display_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/placet-dev/placet/canon"
	"github.com/placet-dev/placet/internal/display"
)

func TestSecretNames(t *testing.T) {
	t.Parallel()
	secret := []string{
		"password", "Password", "PASSWORD", "pass_word", "pass-word", "user.password", "userPassword", "passwd", "db_passwd", "pwd", "passphrase",
		"secret", "client_secret", "clientSecret", "ClientSecret", "secrets", "secret_value",
		"token", "access_token", "accessToken", "ACCESS-TOKEN", "X-Auth-Token", "auth_token_v2", "GITHUB_TOKEN", "refreshtoken",
		"api_key", "apiKey", "API-KEY", "x-api-key", "api key", "APIKEY", "openai.api.key",
		"authorization", "Authorization", "Proxy-Authorization", "credential", "credentials", "aws_credentials",
		"private_key", "privateKey", "PRIVATE-KEY", "ssh_private_key", "secret_access_key", "access_key", "cookie", "Set-Cookie",
		"ｐａｓｓｗｏｒｄ", "pass\u200bword", "to\u00adken", "pássword", "connection_string", "passwordHash",
	}
	for _, n := range secret {
		if !display.SecretName(n) {
			t.Errorf("%q is not taken for a secret", n)
		}
	}
	for _, n := range []string{
		"", "amount", "order_id", "secretary", "tokenize", "max_tokens", "maxTokens", "tokens", "token_count", "author", "pass", "key", "keyboard",
		"passenger", "monkey", "compass", "title", "text", "idempotency_key", "digest",
	} {
		if display.SecretName(n) {
			t.Errorf("%q is taken for a secret", n)
		}
	}
}

// At every depth, inside arrays, and inside JSON in strings (120).
func TestSecretsAreMaskedAtEveryDepth(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"password":"x1"}`:                                    `{"password":"[masked]"}`,
		`{"a":{"Token":"x2"}}`:                                 `{"a":{"Token":"[masked]"}}`,
		`{"a":{"b":{"c":{"d":{"e":{"api-key":1}}}}}}`:          `{"a":{"b":{"c":{"d":{"e":{"api-key":"[masked]"}}}}}}`,
		`[{"secret":["x3",{"deep":"x4"}]},5]`:                  `[{"secret":"[masked]"},5]`,
		`{"body":"{\"user\":\"ana\",\"passwd\":\"x5\"}"}`:      `{"body":"{\"user\":\"ana\",\"passwd\":\"[masked]\"}"}`,
		`{"body":" [{\"x\":\"{\\\"token\\\":\\\"x6\\\"}\"}]"}`: `{"body":"[{\"x\":\"{\\\"token\\\":\\\"[masked]\\\"}\"}]"}`,
		`{"password":null,"n":9007199254740993,"x":1.50}`:      `{"password":null,"n":9007199254740993,"x":1.50}`,
		`{"b":1,"a":2,"text":"{not json}"}`:                    `{"b":1,"a":2,"text":"{not json}"}`,
		`{"body":"{ \"keep\" : \"spaces\" }"}`:                 `{"body":"{ \"keep\" : \"spaces\" }"}`,
		`{"e":"\u202e<&>"}`:                                    `{"e":"\u202e<&>"}`,
	} {
		var m display.Mask
		if got := string(m.JSON([]byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
		if got := (*display.Mask)(nil).JSON([]byte(in)); string(got) != want {
			t.Errorf("without a mask: %s", got)
		}
	}
}

// An innocent name that the tool's schema marks, wherever it stands.
// Half a surrogate pair is no character, and is not made into another one: programs are
// shown the same value, people an escape, and what stands beside it is masked as ever.
func TestHalfOfASurrogatePairStays(t *testing.T) {
	t.Parallel()
	m := &display.Mask{}
	m.Learn([]byte(`{"password":"xyz\ud800"}`))
	for in, want := range map[string]string{
		`{"a":"x\ud800y","\uDFFF":1}`:                                           `{"a":"x\ud800y","\udfff":1}`,
		`{"a":"\udc00\ud800","b":"\ud83d\ude00"}`:                               `{"a":"\udc00\ud800","b":"😀"}`,
		`{"a":"\\ud800 \"\/\b\f\n\r\t\u00e9","b":"\ufffd"}`:                     `{"a":"\\ud800 \"/\u0008\u000c\n\r\té","b":"�"}`,
		`{"body":"{\"passwd\":\"x5\",\"b\":\"\ud800\"}"}`:                       `{"body":"{\"passwd\":\"[masked]\",\"b\":\"\\ud800\"}"}`,
		`{"body":"{\"passwd\":\"x5\",\"b\":\"\\ud800\"}"}`:                      `{"body":"{\"passwd\":\"[masked]\",\"b\":\"\\ud800\"}"}`,
		`{"said":"it was xyz\ud800."}`:                                          `{"said":"it was [masked]."}`,
		`{"body":"{\"passwd\":\"x5\",\"b\":\"{\\\"pwd\\\":\\\"\ud800\\\"}\"}"}`: `{"body":"{\"passwd\":\"[masked]\",\"b\":\"{\\\"pwd\\\":\\\"[masked]\\\"}\"}"}`,
	} {
		if got := string(m.Scrub([]byte(in))); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	if got := m.Value([]byte(`{"a":"x\ud800"}`)); got != `{"a": "x\u{d800}"}` {
		t.Errorf("for people: %s", got)
	}
	if got := m.Value([]byte(`"x\ud800"`)); got != `"x\u{d800}"` {
		t.Errorf("for people: %s", got)
	}
	if got := m.JSON([]byte("{\"a\":\"\xed\xa0\x80\"}")); string(got) != `"{\"a\":\"\\x{ed}\\x{a0}\\x{80}\"}"` {
		t.Errorf("bytes that are not UTF-8 are no JSON: %s", got)
	}
}

func TestSchemaMarksSecrets(t *testing.T) {
	t.Parallel()
	schema := `{"type":"object","$defs":{"hidden":{"type":"string","writeOnly":true}},"properties":{
		"answer":{"type":"string","writeOnly":true},
		"word":{"type":"string","format":"password"},
		"by_ref":{"$ref":"#/$defs/hidden"},
		"list":{"type":"array","items":{"type":"string","writeOnly":true}},
		"deep":{"type":"object","properties":{"inner":{"anyOf":[{"type":"null"},{"format":"password"}]}}},
		"open":{"type":"object","patternProperties":{"^x-":{"writeOnly":true}}},
		"loop":{"$ref":"#"}}}`
	var m display.Mask
	m.Teach([]byte(schema))
	in := `{"answer":"s1","word":"s2","by_ref":"s3","list":["s4"],"deep":{"inner":"s5"},"open":{"x-a":"s6","y":"plain"},"loop":{"answer":"s7"}}`
	got := string(m.JSON([]byte(in)))
	if strings.Contains(got, `"s`) || !strings.Contains(got, `"y":"plain"`) {
		t.Errorf("got %s", got)
	}
	// A default presentation holds the arguments one level down.
	if got := string(m.JSON([]byte(`{"tool":"x","args":{"answer":"s1"}}`))); strings.Contains(got, "s1") {
		t.Errorf("got %s", got)
	}
	var whole display.Mask
	whole.Teach([]byte(`{"type":"string","writeOnly":true}`))
	if got := string(whole.JSON([]byte(`"s8"`))); got != `"[masked]"` {
		t.Errorf("got %s", got)
	}
}

// A secret that a policy's or a tool's text repeats is found there too.
func TestLearntSecretsAreFoundInTexts(t *testing.T) {
	t.Parallel()
	var m display.Mask
	m.Learn([]byte(`{"user":"ana","login":{"password":"hunter22","code":"{\"token\":\"tok-1234\"}"},"pin":{"secret":98765}}`))
	if got := m.Text("ana with hunter22, tok-1234 and 98765"); got != "ana with [masked], [masked] and [masked]" {
		t.Errorf("got %s", got)
	}
	if got := string(m.Scrub([]byte(`{"title":"Log in with hunter22"}`))); got != `{"title":"Log in with [masked]"}` {
		t.Errorf("got %s", got)
	}
	// An argument is not hidden by repeating it under a secret's name.
	if got := string(m.JSON([]byte(`{"target":"hunter22"}`))); got != `{"target":"hunter22"}` {
		t.Errorf("got %s", got)
	}
}

// A text may repeat a secret as a JSON encoder escapes it.
func TestLearntSecretsAreFoundEscaped(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{`pa"ss\word`, `a\b"c`, "two\nlines\there", `<b>&co`, "pässwörd😀", "key/with/slash", "\u2028sep", "bell\a\b\f!"} {
		args, err := json.Marshal(map[string]string{"password": secret})
		if err != nil {
			t.Fatal(err)
		}
		var m display.Mask
		m.Learn(args)
		var ascii strings.Builder
		for _, r := range utf16.Encode([]rune(secret)) {
			if quoted, _ := json.Marshal(string(rune(r))); r < 0x7f && r != '<' && r != '>' && r != '&' {
				ascii.Write(quoted[1 : len(quoted)-1])
			} else if r < 0x7f {
				ascii.WriteByte(byte(r))
			} else {
				fmt.Fprintf(&ascii, `\u%04x`, r)
			}
		}
		minimal, err := canon.AppendString(nil, secret)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{
			secret, string(args[len(`{"password":"`) : len(args)-2]), string(minimal[1 : len(minimal)-1]),
			ascii.String(), strings.ReplaceAll(ascii.String(), "/", `\/`),
		} {
			if got := m.Text("sent " + form + "."); got != "sent [masked]." {
				t.Errorf("%q as %s: %s", secret, form, got)
			}
		}
		if got := string(m.Scrub([]byte(`{"log":` + quote(`got {"password":"`+string(minimal[1:len(minimal)-1])+`"}`) + `}`))); got != `{"log":"got {\"password\":\"[masked]\"}"}` {
			t.Errorf("%q: %s", secret, got)
		}
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// A short secret is masked where it is all of a value, and nowhere inside another.
func TestShortSecretsAreMaskedWhole(t *testing.T) {
	t.Parallel()
	var m, other display.Mask
	m.Learn([]byte(`{"pin":{"otp":"a1"},"cvv":123}`))
	const doc = `{"code":"a1","text":"a1 is in a text","list":["a1","123"],"a1":"x"}`
	want := `{"code":"[masked]","text":"a1 is in a text","list":["[masked]","[masked]"],"a1":"x"}`
	if got := string(m.Scrub([]byte(doc))); got != want {
		t.Errorf("got %s", got)
	}
	other.Learn([]byte(`{"otp":"b2"}`))
	other.Share(&m)
	if got := string(other.Scrub([]byte(`["a1","b2","c3"]`))); got != `["[masked]","[masked]","c3"]` {
		t.Errorf("got %s", got)
	}
	if got := string((&display.Mask{}).Scrub([]byte(`["a1"]`))); got != `["a1"]` {
		t.Errorf("got %s", got)
	}
}

// A caller cannot hide an amount by giving it as a token, too.
func TestAnOpenValueIsNoSecret(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`{"amount":5000,"token":"5000","password":"hunter22"}`,
		`{"token":5000,"order":{"lines":["5000"]},"password":"hunter22"}`,
		`{"token":"5000","body":"{\"amount\":5000}","password":"hunter22"}`,
	} {
		var m display.Mask
		m.Learn([]byte(doc))
		if got := m.Text("Refund 5000 with hunter22"); got != "Refund 5000 with [masked]" {
			t.Errorf("%s: %s", doc, got)
		}
	}
	var m display.Mask
	m.Learn([]byte(`{"token":"tok-1"}`), []byte(`{"target":"tok-1"}`))
	if got := m.Text("tok-1"); got != display.Masked {
		t.Errorf("open in another document: %s", got)
	}
}

// A caller's "secret" cannot make an id or a digest unreadable.
func TestIdsStayWhole(t *testing.T) {
	t.Parallel()
	const text = "apr_01a229a0-5bd2-7d50-8bc0-1d4e45e6cb5d of sha256-placet1:08f9e4bc5f770e1e99a17f0d69fe77b870d8bc2d3088110f3eb219b25ed770ba"
	var m display.Mask
	m.Learn([]byte(`{"token":"apr_"}`), []byte(`{"token":"sha256-placet1:"}`), []byte(`{"token":"5bd2"}`), []byte(`{"token":"shown"}`))
	if got := m.Text(text + " shown 5bd2 apr_"); got != text+" [masked] [masked] [masked]" {
		t.Errorf("got %s", got)
	}
	m.Learn([]byte(`{"token":"apr_01a229a0-5bd2-7d50-8bc0-1d4e45e6cb5d"}`))
	if got := m.Text(text); strings.Contains(got, "7d50") {
		t.Errorf("got %s", got)
	}
}

func TestSchemaIsShownWithoutSecretValues(t *testing.T) {
	t.Parallel()
	in := `{"type":"object","properties":{"password":{"type":"string","default":"x1"},"mode":{"enum":["a","b"]},
		"hidden":{"writeOnly":true,"examples":["x2"]},"conf":{"default":{"token":"x3"}}}}`
	var m display.Mask
	got := string(m.Schema([]byte(in)))
	if strings.Contains(got, "x1") || strings.Contains(got, "x2") || strings.Contains(got, "x3") ||
		!strings.Contains(got, `"password":{"type":"string"`) || !strings.Contains(got, `["a","b"]`) {
		t.Errorf("got %s", got)
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	var m display.Mask
	fs := m.Fields([]byte(`{"title":"a\nb\u202e","n":9007199254740993,"list":[1,"\u001b"],"password":"hunter22","\u001bname":{}}`))
	want := []display.Field{
		{Name: "title", Text: `"a\nb\u{202e}"`, Size: 6},
		{Name: "n", Text: "9007199254740993", Size: 16},
		{Name: "list", Text: `[1, "\u{1b}"]`, Size: 12},
		{Name: "password", Text: "[masked]", Size: 8},
		{Name: `\u{1b}name`, Text: "{}", Size: 2},
	}
	if len(fs) != len(want) {
		t.Fatalf("got %+v", fs)
	}
	for i := range want {
		if fs[i] != want[i] {
			t.Errorf("got %+v, want %+v", fs[i], want[i])
		}
	}
	for _, doc := range []string{`not json`, "\xff", ``, `[1]`, `{"a":1} {"b":2}`} {
		if fs := m.Fields([]byte(doc)); len(fs) != 1 || fs[0].Name != "" {
			t.Errorf("%q: %+v", doc, fs)
		}
	}
	long := m.Fields([]byte(`{"list":["` + strings.Repeat(`x","`, 5000) + `"]}`))
	if len(long[0].Text) > 3000 || !strings.Contains(long[0].Text, "in all") {
		t.Errorf("%d bytes", len(long[0].Text))
	}
}

// Whatever the document, a masked one is one JSON value, and masking it again changes nothing.
func FuzzMask(f *testing.F) {
	for _, s := range []string{`{}`, `{"password":"x"}`, `"{\"token\":1}"`, `[1e5,-0.0,"\ud83d\ude00"]`, "\xff", strings.Repeat("[", 600), `{"a":"\ud800"}`, "{\"password\":\"\xed\xa0\x80\"}", `"{\"pwd\":\"\udfff\"}"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var m display.Mask
		m.Learn(doc)
		once := m.JSON(doc)
		if !json.Valid(once) {
			t.Fatalf("%q becomes %q", doc, once)
		}
		if twice := m.JSON(once); string(twice) != string(once) {
			t.Fatalf("%q becomes %q, then %q", doc, once, twice)
		}
		m.Fields(doc)
		m.Value(doc)
		m.Brief(doc)
		m.Schema(doc)
		m.Teach(doc)
	})
}

func TestBriefEscapesOnce(t *testing.T) {
	t.Parallel()
	var m display.Mask
	for doc, want := range map[string]string{
		`{"said":"one\ntwo"}`: `{"said": "one\ntwo"}`,
		`"one\ntwo"`:          `"one\ntwo"`,
		`{"dir":"C:\\new"}`:   `{"dir": "C:\\new"}`,
	} {
		if got := m.Brief([]byte(doc)); got != want {
			t.Errorf("%s is shown as %s, not as %s", doc, got, want)
		}
	}
	if got := m.Brief([]byte(`["` + strings.Repeat("x", 3*display.Long) + `"]`)); !strings.Contains(got, "not shown") {
		t.Errorf("a long document is shown in %d bytes", len(got))
	}
}
