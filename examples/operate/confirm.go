package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// limit returns a context that ends after --timeout, besides with ctx. The time that a person needs for an answer does not count.
func (o *operator) limit(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	o.timer = time.AfterFunc(o.timeout, func() { cancel(fmt.Errorf("not done within %s (--timeout)", o.timeout)) })
	return ctx, func() {
		o.timer.Stop()
		cancel(nil)
	}
}

// errNotConfirmed says that nothing was done.
var errNotConfirmed = errors.New("not confirmed, nothing was changed: type yes, or give --yes")

// confirm asks before something that cannot be undone. The timeout starts again when the answer is given.
func (o *operator) confirm(ctx context.Context, yes bool, format string, args ...any) error {
	if yes {
		return nil
	}
	if !o.timer.Stop() {
		return context.Cause(ctx) // it has run out
	}
	_, _ = fmt.Fprint(o.errs, clean(fmt.Sprintf(format, args...)), " Type yes to continue: ")
	answer := make(chan string, 1)
	go func() { // a read of a terminal cannot be canceled
		line, _ := bufio.NewReader(o.in).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		o.timer.Reset(o.timeout)
		if strings.TrimSpace(line) != "yes" {
			return errNotConfirmed
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", context.Cause(ctx), errNotConfirmed)
	}
}
