package channel

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/clock"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

const (
	// checkTimeout is how long a platform has for its answer.
	checkTimeout = 4 * time.Second
	// firstCheck and longestCheck bound the waits between the questions about an account. They double.
	firstCheck   = 10 * time.Second
	longestCheck = 5 * time.Minute
)

// Checks ask platforms whether they accept the credentials of accounts. Otherwise a wrong token is silent: a platform sends nothing to
// an account that it does not know. Accounts whose adapters are no adapter.Checker are taken for good. The methods are safe for
// concurrent use.
type Checks struct {
	accounts []AccountAdapter
	log      *zap.Logger
	clock    processors.Clock

	mu     sync.Mutex
	failed map[string]string
}

// CheckConfig configures NewChecks. Fields that are zero have their defaults.
type CheckConfig struct {
	// Logger logs a warning for an account that fails, again when the reason is another one, and a line when it is accepted (default:
	// none).
	Logger *zap.Logger
	// Clock is that of the waits (default: the system's).
	Clock processors.Clock
}

// NewChecks returns checks of accounts. It makes no requests.
func NewChecks(accounts []AccountAdapter, c CheckConfig) *Checks {
	x := &Checks{accounts: accounts, log: c.Logger, clock: c.Clock, failed: map[string]string{}}
	if x.log == nil {
		x.log = zap.NewNop()
	}
	if x.clock == nil {
		x.clock = clock.System()
	}
	return x
}

// Run asks about each account until it is accepted: at once, and then after waits that grow from 10 s to 5 min. It returns nil when all
// are accepted or ctx ends.
func (x *Checks) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, a := range x.accounts {
		if to, ok := a.Adapter.(adapter.Checker); ok {
			running.Go(func() { x.check(ctx, to, a.Adapter.Channel(), a.Name) })
		}
	}
	running.Wait()
	return nil
}

// Failed returns why accounts are not accepted, by "{channel}/{account}", as the platforms said last.
func (x *Checks) Failed() map[string]string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.failed)
}

// check asks about an account until it is accepted or ctx ends.
func (x *Checks) check(ctx context.Context, to adapter.Checker, channel, account string) {
	name := topics.Origin{Channel: channel, Account: account}.Destination().Service
	log := x.log.With(zap.String("channel", channel), zap.String("account", account))
	for said, wait := "", firstCheck; ; wait = min(2*wait, longestCheck) {
		f := ask(ctx, to)
		switch {
		case ctx.Err() != nil:
			return
		case f == nil:
			x.mu.Lock()
			delete(x.failed, name)
			x.mu.Unlock()
			if said != "" {
				log.Warn("the platform accepts the account now")
			}
			return
		}
		text, remedy := "the platform refuses the account", "check the token or password of the account and restart"
		switch {
		case f.Status == 0:
			text, remedy = textUnasked, "check the platform's address and the network"
		case !f.Final && (f.RetryAfter > 0 || isTransient(f.Status)):
			text, remedy = textUnasked, "none: it is asked again"
		}
		x.mu.Lock()
		x.failed[name] = text + ": " + f.Reason + "; " + remedy
		x.mu.Unlock()
		if said != f.Reason {
			said = f.Reason
			log.Warn(text+": no message is received, and answers are retried until their deliveries end", zap.String("reason", f.Reason),
				zap.Int("status", f.Status), zap.String("remedy", remedy))
		}
		if !clock.Sleep(ctx, x.clock, max(wait, f.RetryAfter)) {
			return
		}
	}
}

const textUnasked = "the platform cannot be asked about the account"

// isTransient reports whether an HTTP status says nothing about the credentials: the platform is overloaded or out of order.
func isTransient(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

// ask asks about an account once. Only the reason of a Failure is used: another error may have a secret in its text.
func ask(ctx context.Context, to adapter.Checker) *adapter.Failure {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := to.Check(ctx)
	var f *adapter.Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return f
	case ctx.Err() != nil:
		return &adapter.Failure{Reason: topics.ReasonTimeout}
	default:
		return &adapter.Failure{Reason: reasonOther}
	}
}
