package sqlite

func childMigrates(args []string) error { return nil }
func childRestores(args []string) error { return nil }
