package display_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/placet-dev/placet/internal/display"
	"pgregory.net/rapid"
)

// shown writes pieces for a test: <escape>, {look-alike=what it looks like}, and ¶ for a break.
func shown(pieces []display.Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		switch p.Sort {
		case display.Escape:
			b.WriteString("<" + p.Text + ">")
		case display.Alike:
			_, like, _ := strings.Cut(p.Title, ", ")
			b.WriteString("{" + p.Text + "=" + strings.TrimPrefix(like, "looks like ") + "}")
		case display.Break:
			b.WriteString("¶")
		default:
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// What cannot be seen (113), what a terminal would obey (115), and what turns around or
// covers what stands beside it.
func TestPiecesShowTheUnseen(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                              "",
		"plain <b>&\"it\"</b>":          "plain <b>&\"it\"</b>",
		"a\u200bb\u00adc\ufeffd\u2060e": `a<\u{200b}>b<\u{ad}>c<\u{feff}>d<\u{2060}>e`,
		"ok\U000e0001\U000e0072\U000e006d\U000e007f": `ok<\u{e0001}><\u{e0072}><\u{e006d}><\u{e007f}>`,
		"x\ufe00y\ufe0fz\U000e01ef\u180b":            `x<\u{fe00}>y<\u{fe0f}>z<\u{e01ef}><\u{180b}>`,
		"\u115f\u1160\u3164\uffa0":                   `<\u{115f}><\u{1160}><\u{3164}><\u{ffa0}>`,
		"1\u2028\u2029\u00a0\u3000\u202f2":           `1<\u{2028}><\u{2029}><\u{a0}><\u{3000}><\u{202f}>2`,
		"safe\rrm -rf /":                             `safe<\r>rm -rf /`,
		"\x1b[2K\x1b]8;;https://x\x07y\x1b\\":        `<\u{1b}>[2K<\u{1b}>]8;;https://x<\u{7}>y<\u{1b}>\`,
		"\u009b31m\u009d8;;\u0090\u0085\x7f\x00":     `<\u{9b}>31m<\u{9d}>8;;<\u{90}><\u{85}><\u{7f}><\u{0}>`,
		"a\nb\r\n\tc":                                `a¶b<\r>¶<\t>c`,
		"user\u202etxt.exe\u2066a\u2069\u200f\u061c": `user<\u{202e}>txt.exe<\u{2066}>a<\u{2069}><\u{200f}><\u{61c}>`,
		"e\u0301\u0302\u0303\u0304\u0305!":           "e\u0301\u0302\u0303\u0304<\\u{305}>!",
		"\u0301x\n\u0301y\t\u0301\u200b\u0301":       `<\u{301}>x¶<\u{301}>y<\t><\u{301}><\u{200b}><\u{301}>`,
		"C:\\new\\\u0301 \\x{1}":                     `C:<\u{5c}>new\` + "\u0301" + ` <\u{5c}>x{1}`,
		"a\xffb\xed\xa0\x80c\ue000\U0010ffff":        `a<\x{ff}>b<\u{d800}>c<\u{e000}><\u{10ffff}>`,
	} {
		if got := shown(display.Pieces(in)); got != want {
			t.Errorf("%+q\n got %s\nwant %s", in, got, want)
		}
	}
}

func TestTitlesOfPieces(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"\u202e":       "U+202E RIGHT-TO-LEFT OVERRIDE",
		"\x1b":         "U+001B ESCAPE",
		"\u00ad":       "U+00AD SOFT HYPHEN",
		"\U000e0041":   "U+E0041 TAG LATIN CAPITAL LETTER A",
		"\ue000":       "U+E000, private use",
		"\u0378":       "U+0378, no character known here",
		"\u0301":       "U+0301 COMBINING ACUTE ACCENT, on too many others or on none",
		"\xff":         "byte FF, part of no character",
		"\xed\xb0\x80": "U+DC00, half of a character",
		"\\n":          "U+005C REVERSE SOLIDUS, which would read as an escape here",
		"рау":          "U+0440 CYRILLIC SMALL LETTER ER, looks like p",
		"\uff0f":       "U+FF0F FULLWIDTH SOLIDUS, looks like /",
		"৪":            "U+09EA BENGALI DIGIT FOUR, a digit 4 that looks like 8",
		"\n":           "",
	} {
		if got := display.Pieces(in)[0].Title; got != want {
			t.Errorf("%+q: got %s, want %s", in, got, want)
		}
	}
	if got := display.Escape.String() + display.Alike.String() + display.Break.String() + display.Plain.String(); got != "escapealikebreakplain" {
		t.Errorf("got %s", got)
	}
}

func TestLookAlikes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		// A form of ASCII.
		"𝐚𝒹min ①Ⓑ ﬁ Ⅷ ſ":                  "{𝐚=a}{𝒹=d}min {①=1}{Ⓑ=B} {ﬁ=fi} {Ⅷ=VIII} {ſ=s}",
		"ａdmin.ｃｏｍ／":                      "{ａ=a}dmin.{ｃ=c}{ｏ=o}{ｍ=m}{／=/}",
		"\u212aelvin \u037e \u2024\u2025": "{\u212a=K}elvin {\u037e=;} {\u2024=.}{\u2025=..}",
		"5²+H₂O, 1º, 2ª, № 3™, wait…":     "5²+H₂O, 1º, 2ª, № 3™, wait…",
		"cat …/x x\\… ok…":                "cat {…=...}/x x\\{…=...} ok…",
		"雪 ａdmin http：／／x.com ／ ａ！":       "雪 {ａ=a}dmin http{：=:}{／=/}{／=/}x.com ／ ａ！",
		"雪\nａ！\n雪":                        "雪¶{ａ=a}{！=!}¶雪",
		// Two scripts in a word.
		"раураl.com":        "{р=p}{а=a}{у=y}{р=p}{а=a}l.com",
		"аdmin":             "{а=a}dmin",
		"pаsѕwοrd":          "p{а=a}s{ѕ=s}w{ο=o}rd",
		"éтасо":             "éт{а=a}{с=c}{о=o}",
		"p\u200bау":         `p<\u{200b}>{а=a}{у=y}`,
		"nаї\u0308vе\u0301": "n{а=a}{ї\u0308=ï}v{е\u0301=e}",
		"ρау":               "{ρ=p}{а=a}{у=y}",
		"ꓢꓮꓠTᎪ":             "{ꓢ=S}{ꓮ=A}{ꓠ=N}T{Ꭺ=A}",
		"go\u0261le ɑnd":    "go{\u0261=g}le {ɑ=a}nd",
		"aа\u0301bc":        "a{а\u0301=a}bc",
		"\U0001d6c2dmin":    "{\U0001d6c2=a}dmin",
		// A word all of look-alikes.
		"рау":                              "{р=p}{а=a}{у=y}",
		"ο α":                              "{ο=o} {α=a}",
		"оса, мир":                         "оса, мир",
		"рау.com и мир":                    "{р=p}{а=a}{у=y}.com и мир",
		"мир-рау.com":                      "мир-рау.com",
		"Pay to рауреr":                    "Pay to {р=p}{а=a}{у=y}{р=p}{е=e}r",
		"send all to рау now\n\nпривет":    "send all to {р=p}{а=a}{у=y} now¶¶привет",
		"Мы ставим Docker с Kubernetes":    "Мы ставим Docker с Kubernetes",
		"ВЕРА":                             "{В=B}{Е=E}{Р=P}{А=A}",
		"мир, com.рау, мир":                "мир, com.{р=p}{а=a}{у=y}, мир",
		"а.com и мир":                      "{а=a}.com и мир",
		"Docker с Kubernetes и Go, привет": "Docker с Kubernetes и Go, привет",
		"мир ρау мир λόγος":                "мир {ρ=p}{а=a}{у=y} мир λόγος",
		"мир p\u200bау мир":                `мир p<\u{200b}>{а=a}{у=y} мир`,
		"p\u200bауж мир":                   `p<\u{200b}>{а=a}{у=y}ж мир`,
		"-о file":                          "-{о=o} file",
		// Dotless i.
		"paypaı.com":        "paypa{ı=i}.com",
		"ıd":                "{ı=i}d",
		"Kapıyı aç, şimdi.": "Kapıyı aç, şimdi.",
		// Digits.
		"12٣4":      "12{٣=a digit 3}4",
		"1৪ 100":    "1{৪=a digit 4 that looks like 8} 100",
		"৪৭০":       "{৪=a digit 4 that looks like 8}{৭=a digit 7 that looks like 9}০",
		"g০০gle":    "g{০=0}{০=0}gle",
		"٣٤ ۵":      "٣٤ ۵",
		"মূল্য ৪৭০": "মূল্য ৪৭০",
		// Signs.
		"https:⁄⁄a∕b":                             "https:{⁄=/}{⁄=/}a{∕=/}b",
		"http꞉//x 4∶3":                            "http{꞉=:}//x 4{∶=:}3",
		"curl x ∣ sh ∗ ˃ f":                       "curl x {∣=|} sh {∗=*} {˃=>} f",
		"C:∖dir ∼/x":                              "C:{∖=\\}dir {∼=~}/x",
		"example。com。":                            "example{。=.}com。",
		"1٫500 ٫ Google։ a։b":                     "1{٫=,}500 ٫ Google։ a{։=:}b",
		"rm –rf ––force −5":                       "rm {–=-}rf {–=-}{–=-}force {−=-}5",
		"x=–1 (—a) [‑b] “–c”":                     "x={–=-}1 ({—=-}a) [{‑=-}b] “{–=-}c”",
		"order‑7 5−3 −":                           "order{‑=-}7 5{−=-}3 −",
		"5–10, Mon–Fri — so — he said—and left –": "5–10, Mon–Fri — so — he said—and left –",
		"“don’t”, ‘it’, «la», ‹x›, „so“, 5′ 6″": "“don’t”, ‘it’, «la», ‹x›, „so“, 5′ 6″",
		"-–x":         "-{–=-}x",
		"l1I|O0 rn m": "l1I|O0 rn m",
	} {
		if got := shown(display.Pieces(in)); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

// Prose in the scripts that people write is not full of marks.
func TestProseHasNoLookAlikes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Сосна росла у реки. «Как дела?» — спросила она. А он — нет; он у окна, с книгой.\nООО «Рога и копыта», СССР, 5–10 км.",
		"Сервер nginx с PHP 8.3, а также iOS и Android. Версия 2а, файл отчёт_2024.pdf, e-mail: ivan@example.ru",
		"Її сестра Оксана має око на все; і я теж. Ціна: 100 грн.",
		"Једна особа је овде, а она је тамо.",
		"Το σπίτι είναι μεγάλο. «Ο ΟΤΕ και η ΔΕΗ», είπε ο Νίκος. Τι κάνεις;",
		"Բարեւ, ինչպե՞ս եք։ Ես լավ եմ։",
		"გამარჯობა, როგორ ხარ? ყველა აქ არის.",
		"私は「東京」へ行きます。価格：１００円（税込）です！ＮＨＫ、ＵＲＬ、Ａ社、①準備、…そして？\nｶﾀｶﾅ 雪／雨",
		"使用Go，Python等（见文档）。你好！是吗？甲；乙：4。《书》——“好”……",
		"안녕하세요. 오늘은 날씨가 좋습니다. 가격: 1,000원 (부가세 포함).",
		"مرحبا، كيف حالك؟ السعر ١٢٣٫٤٥ دولار. هذه قائمة: ٥، ٠، ١.",
		"یہ اردو ہے۔ قیمت ۵۰۰ روپے۔ ہاں۔",
		"שלום, מה שלומך? סוס. המחיר 100 ש״ח.",
		"नमस्ते, आप कैसे हैं? मूल्य ₹१००।",
		"সকাল ৭টা, মূল্য ৪৭০ টাকা।",
		"สวัสดีครับ ราคา ๑๐๐ บาท",
		"ᎣᏏᏲ, ᏙᎯᏧ? ᎠᏯ ᏣᎳᎩ.",
		"Tiếng Việt rất đẹp; giá 5.000 đ.",
		"Grüße aus Köln – „schön“, oder? Straße 5a, 10–12 Uhr. Zürich’s",
		"L’été, « ça va ? » — œuvre n° 5, 1º, 2ª… ¿Qué tal? ¡Hola! Ñandú.",
		"Zażółć gęślą jaźń. Þórður á Íslandi, Ørsted, Łódź, ß, æ, đ, ħ, ŋ.",
		"Satın alındı: ışık, kapı, ılık. Şimdi değil.",
		"3×4 = 12, a ≤ b, 2πr, Δx ≈ 0, 10 µm, ½, 5 °C, £5, €7, H₂O, x², ∞, 👍🏽, ←→",
	} {
		for _, p := range display.Pieces(text) {
			if p.Sort == display.Alike {
				t.Errorf("%s in %s", p.Title, text)
			}
		}
		if display.Warning(text) != "" {
			t.Errorf("%s: %s", display.Warning(text), text)
		}
	}
}

func TestWarning(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                           "",
		"plain\n\ttext, C:\\new":     "",
		"a\u200bb":                   "1 character that cannot be seen",
		"a\u200bb\u202eаdmin":        "2 characters that cannot be seen, 1 that looks like another",
		"раураl":                     "5 characters that look like others",
		"\r\u0301\xff":               "1 character that cannot be seen, 1 that covers others, 1 that is broken",
		"\u0301\u0301\xff\xfe":       "2 characters that cover others, 2 that are broken",
		strings.Repeat("\x1b", 1234): "1,234 characters that cannot be seen",
	} {
		if got := display.Warning(in); got != want {
			t.Errorf("%+q: got %s, want %s", in, got, want)
		}
		if got := display.Suspicious(in); got != (want != "") {
			t.Errorf("%+q: suspicious is %v", in, got)
		}
	}
}

// What a warning is about is named, each sort once, in the order of the text.
func TestOddities(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]display.Oddity{
		"plain\ntext": nil,
		"a\u200bb\u202eаdmin\u200b": {
			{Title: "U+200B ZERO WIDTH SPACE", Count: 2},
			{Title: "U+202E RIGHT-TO-LEFT OVERRIDE", Count: 1},
			{Title: "U+0430 CYRILLIC SMALL LETTER A, looks like a", Count: 1},
		},
	} {
		if got := display.Oddities(in); !slices.Equal(got, want) {
			t.Errorf("%+q: got %v, want %v", in, got, want)
		}
	}
	var m display.Mask
	got := m.Tree([]byte(`{"a\u200b":["x\u202ey"],"password":"\u202e","b":"\u200b"}`)).Oddities()
	want := []display.Oddity{{Title: "U+200B ZERO WIDTH SPACE", Count: 2}, {Title: "U+202E RIGHT-TO-LEFT OVERRIDE", Count: 1}}
	if !slices.Equal(got, want) {
		t.Errorf("of a tree: got %v, want %v", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := anyText.Draw(t, "text")
		if display.Suspicious(s) && len(display.Oddities(s)) == 0 {
			t.Errorf("%+q: warned of, and not named", s)
		}
	})
}

// anyText is text with much of what pieces are about.
var anyText = rapid.Custom(func(t *rapid.T) string {
	odd := []string{
		"\u202e", "\u200b", "\U000e0041", "\x1b", "\r", "\n", "\t", "\\", "\\n", "\\u{", "\u0301", "\u0301\u0301\u0301", "\xff", "\xed\xa0\x80", "\xed", "а", "р", "ж", "α",
		"l", "a", "5", "٣", "৪", "０", "ａ", "（", "／", "①", "…", "–", "-", "‑", "/", " ", "雪", "ı", "ş", "⁄", "。", "\"", "𝐚", "ї", "ﬁ", ".",
	}
	parts := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom(odd), rapid.SampledFrom(odd), rapid.StringN(0, 3, -1))).Draw(t, "parts")
	return strings.Join(parts, "")
})

func TestPiecesAreTheLine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { checkPieces(t, anyText.Draw(t, "text")) })
}

type failer interface{ Fatalf(string, ...any) }

// checkPieces holds for every text.
func checkPieces(t failer, s string) {
	var joined strings.Builder
	odd := false
	for _, p := range display.Pieces(s) {
		joined.WriteString(p.Text)
		checkFit(t, s, p)
		tab := p.Text == `\t` || p.Text == `\u{5c}`
		odd = odd || p.Sort == display.Alike || p.Sort == display.Escape && !tab
	}
	if line := display.Line(s); joined.String() != line {
		t.Fatalf("%q: the pieces are %q, the line is %q", s, joined.String(), line)
	}
	if display.Suspicious(s) != odd || (display.Warning(s) != "") != odd {
		t.Fatalf("%q: suspicious is %v, the warning is %q", s, display.Suspicious(s), display.Warning(s))
	}
}

func checkFit(t failer, s string, p display.Piece) {
	for _, text := range []string{p.Text, p.Title} {
		for _, r := range text {
			if display.Hidden(r) || r == utf8.RuneError && !strings.ContainsRune(s, utf8.RuneError) {
				t.Fatalf("%q comes out as %q (%s)", s, p.Text, p.Title)
			}
		}
	}
	if p.Text == "" || (p.Title != "") != (p.Sort == display.Escape || p.Sort == display.Alike) || p.Sort == display.Break && p.Text != `\n` {
		t.Fatalf("%q has the piece %+v", s, p)
	}
	if r, n := utf8.DecodeRuneInString(p.Text); p.Sort == display.Alike && (r < utf8.RuneSelf || utf8.RuneCountInString(p.Text[n:]) > 4) {
		t.Fatalf("%q has the look-alike %+q", s, p.Text)
	}
}

func TestHeadTail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in         string
		limit      int
		head, tail string
		cut        int
	}{
		{"", 4, "", "", 0},
		{"abcd", 4, "abcd", "", 0},
		{"abcdefgh", 4, "abc", "h", 4},
		{"éééé", 4, "éééé", "", 0},
		{"ééééééé", 4, "ééé", "é", 6},
		{"abe\u0301\u0302defh\u0301", 4, "abe\u0301\u0302", "h\u0301", 3},
		{"\xed\xa0\x80\xed\xa0\x80\xed\xa0\x80\xed\xa0\x80\xed\xb0\x80\xed\xb0\x80", 4, "\xed\xa0\x80\xed\xa0\x80\xed\xa0\x80", "\xed\xb0\x80", 6},
		{"abcxy", 1, "", "", 5},
		{"abx" + strings.Repeat("\u0301", 9) + "cd", 4, "abx\u0301\u0301\u0301\u0301", "d", 11},
		{"abcd" + strings.Repeat("\u0301", 9), 4, "abc", "\u0301", 17},
		{"abc" + strings.Repeat("\u0301", 9) + "d", 4, "abc\u0301\u0301\u0301\u0301", "d", 10},
	} {
		head, tail, cut := display.HeadTail(c.in, c.limit)
		if head != c.head || tail != c.tail || cut != c.cut {
			t.Errorf("%+q: got %+q, %+q, %d", c.in, head, tail, cut)
		}
	}
}

func TestHeadTailIsTheExcerpt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, limit := anyText.Draw(t, "text"), rapid.IntRange(0, 30).Draw(t, "limit")
		head, tail, cut := display.HeadTail(s, limit)
		if !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) || len(head)+cut+len(tail) != len(s) || cut < 0 {
			t.Fatalf("%+q, %+q, %d", head, tail, cut)
		}
		want := display.Line(s)
		if cut > 0 {
			want = display.Line(head) + " [… " + display.Bytes(cut) + " not shown; " + display.Bytes(len(s)) + " in all …] " + display.Line(tail)
		}
		if got := display.Excerpt(s, limit); got != want {
			t.Fatalf("the excerpt is %s, not %s", got, want)
		}
		if cut == 0 && tail != "" || limit > 0 && cut > 0 && utf8.RuneCountInString(s) <= limit {
			t.Fatalf("%+q is cut into %+q and %+q", s, head, tail)
		}
		// What is shown of both ends is what the whole text has there.
		if whole := display.Line(s); !strings.HasPrefix(whole, display.Line(head)) && !strings.HasSuffix(head, `\`) {
			t.Fatalf("%s does not begin with %s", whole, display.Line(head))
		}
	})
}

func FuzzPieces(f *testing.F) {
	for _, s := range []string{"", "раураl.com\n", "a\u202eb\xff", "–rf …/x ／", "৪1 ı", "e\u0301\u0301\u0301\u0301\u0301", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkPieces(t, s) })
}
