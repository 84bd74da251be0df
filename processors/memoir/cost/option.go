package cost

import (
	"errors"
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

// ErrOption is wrapped by every error of Graph and SpendingGraph about an option that is out of range.
var ErrOption = errors.New("cost: option out of range")

// Option sets a rule of Graph and SpendingGraph. Give both the same options.
type Option func(*Rules)

// Rules are the settings of a transition.
type Rules struct{ window digests.Window }

// defaultRules returns the defaults of all options.
func defaultRules() Rules { return Rules{window: digests.DefaultWindow} }

// WithRemembered sets for how long a row remembers the IDs of the records that it has added, and how many of them (default 24
// hours, 1000; 1 s to 10 years, 1 to 10,000). A record that is repeated later is added twice. Each takes 12 bytes, which are
// written with each record of the row. Set count higher than the number of records that a user's or tenant's calls have
// between two commits of the processor, because a crash repeats as many.
func WithRemembered(d time.Duration, count int) Option {
	return func(r *Rules) { r.window = digests.Window{For: d, Count: count} }
}

func configure(agent string, opts []Option) (topics.Catalog, Rules, error) {
	catalog, err := topics.For(agent)
	if err != nil {
		return catalog, Rules{}, fmt.Errorf("cost: %w", err)
	}
	rules := defaultRules()
	for _, opt := range opts {
		opt(&rules)
	}
	if err := rules.window.Check(); err != nil {
		return catalog, rules, fmt.Errorf("%w: %w", ErrOption, err)
	}
	return catalog, rules, nil
}
