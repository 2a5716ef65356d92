package tool

import "context"

type startCheckKey struct{}

// WithStartCheck gives ctx a check that is asked immediately before something begins
// that cannot be taken back: a program is started, a request is sent, a function is
// called. Much time may have passed since [Invoke] was called, the process may have
// been stopped meanwhile, and what entitled the caller to the attempt, a lease say, may
// have ended. An error of check means that nothing is begun: the attempt is
// [ErrNotStarted].
//
// check may be asked several times for one attempt, and on other goroutines. A ctx that
// has a check already gets another: both have to pass.
func WithStartCheck(ctx context.Context, check func() error) context.Context {
	outer, _ := ctx.Value(startCheckKey{}).(func() error)
	both := check
	if outer != nil {
		both = func() error {
			if err := outer(); err != nil {
				return err
			}
			return check()
		}
	}
	return context.WithValue(ctx, startCheckKey{}, both)
}

// StartCheck is why nothing may be begun under ctx any more: the error of ctx, or that
// of its check (see [WithStartCheck]). A [Runner] calls it as late as it can, and
// returns [ErrNotStarted] where it gives an error.
func StartCheck(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if check, ok := ctx.Value(startCheckKey{}).(func() error); ok {
		if err := check(); err != nil {
			return err
		}
	}
	return ctx.Err() // the check may have taken long
}

// mayStart is [StartCheck] as the refusal of a runner; refused is what it says, "The
// tool was not started", say.
func mayStart(ctx context.Context, refused string) error {
	err := StartCheck(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return ErrNotStarted.Say("%s: %s.", refused, because(err))
}
