// Package debian finds the programs that tests drive. Root on Debian gets those installed
// that are missing, once, however many test programs want them at the same time.
//
//	path, err := debian.Tmux.Path(ctx)
//
// PostgreSQL, whose packages start services, is scripts/test-postgres' to install.
package debian
