// Package e2e has no code of its own: its tests walk the web inbox in a real browser, as
// placet serve has it. make e2e runs them and keeps the pictures.
package e2e
