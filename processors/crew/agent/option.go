package agent

import (
	"errors"
	"fmt"
	"time"
)

// ErrOption is wrapped by the error of an option that is out of range.
var ErrOption = errors.New("crew agent: invalid option")

// Option sets a rule of Graph, which returns an error that names the first option that is out of range.
type Option func(*rules)

// WithPermissionTimeout sets how long a person may take to answer a permission request (default 60 seconds, at least 1 ms).
// After that it is denied.
func WithPermissionTimeout(d time.Duration) Option {
	return func(r *rules) { r.permission = d }
}

// WithHungAfter sets how long an agent may be silent during a turn until agent:hung is written (default 5 minutes, at least
// 1 ms). Nothing else happens then. The time in which a person is asked for a permission does not count.
func WithHungAfter(d time.Duration) Option {
	return func(r *rules) { r.hung = d }
}

// WithRestartDelay sets how long a crashed agent waits until it is started again (default 2 seconds, at least 1 ms).
func WithRestartDelay(d time.Duration) Option {
	return func(r *rules) { r.restart = d }
}

// rules are what users can set.
type rules struct {
	permission, hung, restart time.Duration
}

const (
	// startTimeout is how long a host may take for its first answer to a CrewStart.
	startTimeout = time.Minute
	// hostTimeout is how long a host may be silent while it has the agent's process. It writes a beat every 10 seconds.
	hostTimeout = 45 * time.Second
	// mostDoublings is how often the time until a host is asked again doubles: to about an hour.
	mostDoublings = 6
	// shownFor is how long an agent is shown after its end, and keptFor how long its row is kept after that.
	shownFor = 30 * time.Second
	keptFor  = 7 * 24 * time.Hour
	// activeEvery is how often the repository is told that the agent works.
	activeEvery = time.Minute
	// idleAfter is how long an agent has nothing to do until clients and the crew are told.
	idleAfter = 500 * time.Millisecond
	// answerTimeout is how long an agent that has nothing else to do waits for the answer to a command, and commitTimeout for that to
	// a COMMIT, which git gives.
	answerTimeout = 30 * time.Second
	commitTimeout = 3 * time.Minute
	// awaitedLimit is the number of commands, the newest, whose answers an agent waits for.
	awaitedLimit = 100
	// restartLimit is the number of crashes that reach the limit unless CrewSpawn says another.
	restartLimit = 3
)

func rulesOf(opts []Option) (rules, error) {
	r := rules{permission: time.Minute, hung: 5 * time.Minute, restart: 2 * time.Second}
	for _, opt := range opts {
		opt(&r)
	}
	for _, o := range []struct {
		name  string
		value time.Duration
	}{
		{"WithPermissionTimeout", r.permission}, {"WithHungAfter", r.hung}, {"WithRestartDelay", r.restart},
	} {
		if o.value < time.Millisecond {
			return r, fmt.Errorf("%w: %s: %v is less than 1 ms", ErrOption, o.name, o.value)
		}
	}
	return r, nil
}
