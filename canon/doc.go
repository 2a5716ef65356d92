// Package canon writes a JSON value in its one canonical form and digests it.
// An approval is bound to such a digest, so two texts share a form exactly when
// they are the same request.
//
// # The profile
//
// The form is called placet1 ([Profile]). Its layout is that of RFC 8785:
//
//   - no white space;
//   - the members of an object in the order of their keys, compared as UTF-16
//     code units, so that U+1F600 (a surrogate pair) stands before U+FB33;
//   - in strings only what must be escaped is: \" \\ \b \t \n \f \r, and \u00xx
//     in lower case for the other characters below U+0020. Everything else
//     stands as itself in UTF-8, < > & and U+2028 included.
//
// Numbers differ from RFC 8785. There they pass through a 64-bit float, which
// makes 9007199254740992 and 9007199254740993 one; here they keep their exact
// decimal value.
//
// # Numbers
//
// Two spellings are the same number if they denote the same decimal value:
//
//	1  1.0  1e0  10e-1  0.1e1     are 1
//	0  -0  -0.0  0e5              are 0
//	5e2  5.00e2  500              are 500
//
// and no two different values ever are. The layout is the one ECMAScript uses
// for the digits of the value, without leading and trailing zeros:
//
//   - below 10^21 and from 10^-6 on, no exponent: 100000000000000000000, 0.000001;
//   - otherwise one digit, the other digits after a point, and an exponent with
//     its sign: 1e+21, 1.5e-7, 1.2345678901234567890123456789e+29.
//
// # Strings
//
// A string is its sequence of Unicode scalar values. How it was escaped does not
// matter; anything else does. Unicode is not normalised: é as one character and
// as e with a combining accent are two strings. Case is kept. Characters that
// cannot be seen (U+200B, U+202E) stay; showing them safely is for who shows them.
//
// # Refusals
//
// What is not JSON as RFC 8259 has it is refused, and beyond that whatever two
// readers could understand differently: a key that occurs twice in an object,
// also if spelt with other escapes; a surrogate without its other half; invalid
// UTF-8; a byte order mark. Nothing is repaired. The error is a [*SyntaxError]
// with the byte offset.
//
// Three limits keep the work for a hostile input in proportion to its length:
//
//   - arrays and objects nest at most [MaxDepth] deep;
//   - a number is at most [MaxNumber] bytes long as written. The canonical form
//     of such a number may be up to six bytes longer, and is accepted as well;
//   - an exponent is at most [MaxExponent] in magnitude, both as written and in
//     the form with one digit before the point. So 1e10000 is accepted, and
//     1e10001, 10e10000 and even 0e10001 are refused.
//
// What is accepted has a canonical form that is accepted, and is its own.
//
// # Digests
//
// A digest is [DigestPrefix] and the lower-case hexadecimal SHA-256 of a domain,
// a line feed and the canonical form. The domain says what the value is, so the
// digest of a tool's arguments never equals that of a tool. No canonical form
// contains a raw line feed, therefore no two pairs of domain and form are
// hashed as the same bytes.
//
// # Stability
//
// Stored approvals carry these digests, so a released profile never changes: not
// its layout, not a limit, not what it refuses. A correction is a new profile
// with a new name, and the name stands in front of every digest.
package canon
