package sqlite

// mayEnter refuses an update or a view called inside a closure, in tests only.
func (e *engine) mayEnter() error {
	if !e.o.Hooks.Strict {
		return nil
	}
	return e.strict.Enter()
}

// inside marks this goroutine as being in a closure until the returned function is called.
func (e *engine) inside() func() {
	if !e.o.Hooks.Strict {
		return func() {}
	}
	return e.strict.Inside()
}
