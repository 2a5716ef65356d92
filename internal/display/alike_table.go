package display

import "unicode"

// What Unicode's list of confusables (UTS #39) says about letters and digits that look
// like ONE character of ASCII, as far as it can mislead: a letter is looked at within its
// script, see alike.go. Left out are scripts that are joined or stacked (Arabic, Hebrew,
// the signs of India), ideographs, and what living alphabets have and is told apart at a
// glance. What Unicode itself counts as a form of an ASCII character (fullwidth,
// mathematical, circled) needs no list.
//
// Each word below is one character of ASCII and those that look like it. Of 0 and O, and
// of 1, I, l and |, which look alike themselves, it is the likeliest.

type likeLetters struct {
	script *unicode.RangeTable
	words  string
}

var likeLetter = []likeLetters{
	{unicode.Latin, "!\u01c3 &\ua778 2\u01a7\ua75a 3\u021c\ua76a\ua7ab 5\u01bc 8\u0222\u0223 9\ua76e B\ua7b4 F\ua798 I\u0196 J\ua7b2 " +
		"R\u01a6 X\ua7b3 a\u0251 b\u0184 c\u1d04 e\uab32 f\u1e9d\ua799\uab35 g\u018d\u0261\u1d83 i\u0131\u0269\u026a " +
		"o\u1d0f\u1d11\uab3d r\uab47\uab48 s\u01bd\ua731 u\u1d1c\ua79f\uab4e\uab52 v\u1d20 w\u026f\u1d21 " +
		"y\u028f\u1d8c\u1eff\uab5a z\u1d22 |\u01c0"},
	{unicode.Cyrillic, "2\ua644 3\u0417\u04e0 6\u0431 A\u0410 B\u0412 C\u0421 E\u0415 G\u050c H\u041d I\u0406\u04c0 J\u0408 K\u041a M\u041c " +
		"O\u041e P\u0420 S\u0405 T\u0422 V\u0474 W\u051c X\u0425 Y\u0423\u04ae a\u0430 b\u042c c\u0441 d\u0501 e\u0435\u04bd " +
		"h\u04bb i\u0456\ua647 j\u0458 l\u04cf o\u043e p\u0440 q\u051b r\u0433 s\u0455 v\u0475 w\u0461\u051d x\u0445 " +
		"y\u0443\u04af"},
	{unicode.Greek, "A\u0391 B\u0392 C\u03f9 E\u0395 F\u03dc H\u0397 I\u0399 J\u037f K\u039a M\u039c\u03fa N\u039d O\u039f P\u03a1 T\u03a4 " +
		"X\u03a7 Y\u03a5\u03d2 Z\u0396 a\u03b1 c\u03f2 i\u03b9 j\u03f3 o\u03bf\u03c3 p\u03c1\u03f1 r\u1d26 u\u03c5 v\u03bd " +
		"y\u03b3"},
	{unicode.Armenian, "O\u0555 S\u054f U\u054d f\u0584 g\u0581 h\u0570 n\u0578\u057c o\u0585 q\u0563\u0566 u\u057d w\u0561"},
	{unicode.Georgian, "o\u10ff y\u10e7"},
	{unicode.Cherokee, "4\u13ce 6\u13ee ?\u13ae A\u13aa B\u13f4 C\u13df D\u13a0 E\u13ac G\u13c0\u13f3 H\u13bb J\u13ab K\u13e6 L\u13de M\u13b7 " +
		"P\u13e2 R\u13a1\u13d2 S\u13d5\u13da T\u13a2 V\u13d9 W\u13b3\u13d4 Y\u13a9\u13bd Z\u13c3 b\u13cf c\uabaf d\u13e7 " +
		"h\u13c2 i\u13a5\uab75 r\uab81 s\uabaa v\uaba9 w\uab83 z\uab93"},
	{unicode.Lisu, ",\ua4f9 .\ua4f8 :\ua4fd A\ua4ee B\ua4d0 C\ua4da D\ua4d3 E\ua4f0 F\ua4dd G\ua4d6 H\ua4e7 I\ua4f2 J\ua4d9 K\ua4d7 " +
		"L\ua4e1 M\ua4df N\ua4e0 O\ua4f3 P\ua4d1 R\ua4e3 S\ua4e2 T\ua4d4 U\ua4f4 V\ua4e6 W\ua4ea X\ua4eb Y\ua4ec Z\ua4dc " +
		"d\ua4d2"},
	{unicode.Coptic, "-\u2cba /\u2cc6 2\u03e8 3\u2ccc 6\u2cd2 9\u2cca C\u2ca4 H\u2c8e I\u2c92 K\u2c94 L\u2cd0 M\u2c98 N\u2c9a O\u2c9e " +
		"P\u2ca2 T\u2ca6 X\u2cac Y\u2ca8 c\u2ca5 o\u2c9f p\u2ca3 r\u2c85"},
	{unicode.Canadian_Aboriginal, "2\u14bf <\u1438 >\u1433 A\u15c5 B\u15f7 D\u15de\u15ea F\u15b4 H\u157c J\u148d L\u14aa M\u15f0 P\u146d R\u1587 U\u144c " +
		"V\u142f b\u1472\u15af d\u146f x\u1541\u157d"},
	{unicode.Tifinagh, "!\u2d51 E\u2d39 I\u2d4f O\u2d54 Q\u2d55 V\u2d38 X\u2d5d"},
	{unicode.Runic, "<\u16b2 I\u16c1 K\u16d5 M\u16d6 X\u16b7"},
	{unicode.Ethiopic, "O\u12d0 U\u1200"},
	{unicode.Myanmar, "o\u101d"},
	{unicode.Oriya, "O\u0b20"},
	{unicode.Malayalam, "o\u0d20"},
	{unicode.Deseret, "C\U00010415 L\U0001041b O\U00010404 S\U00010420 c\U0001043d o\U0001042c s\U00010448"},
	{unicode.Osage, "7\U000104d2 O\U000104c2 R\U000104b4 U\U000104ce o\U000104ea u\U000104f6"},
	{unicode.Old_Italic, "*\U0001031f 8\U0001031a B\U00010301 C\U00010302 I\U00010309 M\U00010311 T\U00010315 X\U00010317"},
	{unicode.Lycian, "+\U0001029b B\U00010282 E\U00010286 F\U00010287 I\U0001028a O\U00010292 P\U00010295 S\U00010296 T\U00010297 " +
		"X\U00010290"},
	{unicode.Carian, "A\U000102a0 B\U000102a1 C\U000102a2 F\U000102a5 H\U000102cf M\U000102b0 O\U000102ab T\U000102b1 X\U000102b4 " +
		"Y\U000102b2"},
	{unicode.Elbasan, "C\U0001051c F\U00010525 K\U00010518 L\U00010526 N\U00010513 O\U00010516 V\U0001051d X\U00010527"},
	{unicode.Warang_Citi, "3\U000118ca 4\U000118af 5\U000118bb 6\U000118d5 7\U000118c6 9\U000118ac\U000118cc\U000118d6 E\U000118a6\U000118ae " +
		"F\U000118a2\U000118c2 L\U000118a3\U000118b2 O\U000118b5 T\U000118bc U\U000118b8 V\U000118a0 Y\U000118a4 Z\U000118a9 " +
		"i\U000118c3 o\U000118c8\U000118d7 s\U000118c1 u\U000118d8 v\U000118c0 y\U000118dc z\U000118c4"},
	{unicode.Miao, "3\U00016f3b >\U00016f3f A\U00016f40 I\U00016f28 L\U00016f16 R\U00016f35 S\U00016f3a T\U00016f0a U\U00016f42 " +
		"V\U00016f08 Y\U00016f43"},
}

// likeDigit is of decimal digits. Some of them have another value than the digit that they
// look like.
const likeDigit = ".\u0660\u06f0 0\u07c0\u09e6\u0b66\U000114d0 1\u0661\u06f1 8\u09ea\u0a6a 9\u09ed\u0a67\u0b68\u0d6d V\u0667\u06f7 " +
	"o\u0665\u06f5\u0966\u0a66\u0ae6\u0be6\u0c66\u0ce6\u0d66\u0e50\u0ed0\u1040"

// Signs that pass for one that means something in a path, an address or a command.
// Quotes are not among them: they are everywhere in prose, and told apart.
const (
	// Hardly met elsewhere.
	likeSign = "/\u2044\u2215\u2571\u27cb\u29f8 \\\u2216\u27cd\u29f5\u29f9 |\u2223\u2758\uffe8 :\u02d0\u02f8\u205a\u2236\ua789 -\u02d7\u2043 " +
		"*\u204e\u2217 <\u02c2 >\u02c3 =\u2e40\ua78a ^\u02c4\u02c6 ~\u02dc\u2053\u223c `\u02cb\u2035 %\u2052 ,\u00b8 _\u02cd " +
		"(\u2768\u2772 )\u2769\u2773 {\u2774 }\u2775"
	// Ordinary in their scripts, or in prose; not directly between ASCII letters or digits.
	likeSignBetween = ".\u3002\uff61\u0701\u0702\ua60e :\u0589\u05c3\u0703\u0704\u1803\u1809\u16ec ,\u060d\u066b %\u066a -\u06d4"
	// The same, and where an option could begin.
	likeHyphen = "\u2010\u2011\u2212"
	// Where an option could begin.
	likeDash = "\u2012\u2013\u2014\u2015\ufe58"
)
