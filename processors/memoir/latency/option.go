package latency

import (
	"errors"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// ErrOption is wrapped by every error of Graph about an option that is out of range.
var ErrOption = errors.New("latency: option out of range")

// Option sets a rule of Graph.
type Option func(*Rules)

// Rules are the settings of a transition.
type Rules struct {
	expiry time.Duration
	window digests.Window
}

// defaultRules returns the defaults of all options.
func defaultRules() Rules { return Rules{expiry: 30 * 24 * time.Hour, window: digests.DefaultWindow} }

// WithExpiry sets how long after its last call a tool's row is removed (default 30 days, 1 s to 10 years).
func WithExpiry(d time.Duration) Option {
	return func(r *Rules) { r.expiry = d }
}

// WithRemembered sets for how long a row remembers the IDs of the records that it has added, and how many of them (default 24
// hours, 1000; 1 s to 10 years, 1 to 10,000). A record that is repeated later is added twice. Each takes 12 bytes, which are
// written with each record of the row. Set count higher than the number of calls that a tool has between two commits of the
// processor, because a crash repeats as many.
func WithRemembered(d time.Duration, count int) Option {
	return func(r *Rules) { r.window = digests.Window{For: d, Count: count} }
}

func configure(agent string, opts []Option) (topics.Catalog, Rules, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return catalog, Rules{}, fmt.Errorf("latency: %w", err)
	}
	rules := defaultRules()
	for _, opt := range opts {
		opt(&rules)
	}
	if rules.expiry < time.Second || rules.expiry > 10*365*24*time.Hour {
		return catalog, rules, fmt.Errorf("%w: expiry is %v, want 1s to 10 years", ErrOption, rules.expiry)
	}
	if err := rules.window.Check(); err != nil {
		return catalog, rules, fmt.Errorf("%w: %w", ErrOption, err)
	}
	return catalog, rules, nil
}
