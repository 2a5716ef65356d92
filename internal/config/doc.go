// Package config reads placet.yaml: tools, agents, rules and guards (spec 4.2, 4.7).
//
// Reading is strict. Whatever is not understood is refused with the file, the line and
// what to write instead, and everything that is wrong is told at once. Nothing is
// coerced: what a tool's schema says about numbers reaches the registry digit by digit,
// because a person's yes is bound to it.
//
// The file is read as YAML 1.2 without the parts by which a short text means a long
// or a surprising one: no anchors and aliases, no merge keys, no tags, one document.
package config
