package think

import (
	"time"

	"github.com/turntable-streams/turntable/processors/internal/responder"
	"github.com/turntable-streams/turntable/processors/worker"
)

// Limit bounds the calls that have the same key, see worker.Limit.
type Limit = worker.Limit[Step]

// ModelLimit bounds the calls of each model. Zero fields have the defaults that are named here.
type ModelLimit struct {
	// Model returns the name of the model that a step is for. Steps of other models do not wait for it. By default all steps
	// are for one model, which has the name of the agent. Workers that share a Limiter and a name share its limits.
	Model func(Step) string
	// Concurrency is how many calls of a model run at a time (default: Config.Concurrency is the only limit).
	Concurrency int
	// RequestsPerMinute is how many calls of a model begin in a minute (default: no limit).
	RequestsPerMinute int
	// TokensPerMinute is how many tokens calls of a model use in a minute (default: no limit). A call takes the estimate of
	// Tokens when it begins; when it ends, the estimate is corrected to the tokens that the reply reports.
	TokensPerMinute int
	// Tokens estimates the tokens of a step (default: a quarter of the bytes of its messages).
	Tokens func(Step) int
}

// The names of the limits of a model.
const (
	requestLimit = "model"
	tokenLimit   = "model tokens"
)

// limitsOf returns the limits of an agent's steps, and completes the model's.
func (r *rules) limitsOf(agent string) []Limit {
	m := &r.model
	if m.Model == nil {
		m.Model = func(Step) string { return agent }
	}
	if m.Tokens == nil {
		m.Tokens = estimate
	}
	all := []Limit{
		{Name: "think " + r.Group, Concurrency: r.Concurrency},
		{Name: requestLimit, Key: m.Model, Concurrency: m.Concurrency, PerMinute: m.RequestsPerMinute},
	}
	if m.TokensPerMinute > 0 {
		all = append(all, Limit{Name: tokenLimit, Key: m.Model, PerMinute: m.TokensPerMinute, Cost: m.Tokens})
	}
	return append(all, r.limits...)
}

// bytesPerToken is a rough average.
const bytesPerToken = 4

func estimate(s Step) int {
	size := len(s.Memoir) + len(s.EphemeralPrompt)
	for _, m := range s.Messages {
		size += len(m.Content)
	}
	return size / bytesPerToken
}

const (
	// ignoring is how long the worker waits for a model whose context has ended. Models that publish events need some time.
	ignoring = 5 * time.Second
	// maxHung is how many calls that ignore the end of their context may have lost their place for each that may run.
	maxHung = 10
)

func (r *rules) calls() responder.OverdueCalls {
	return responder.OverdueCalls{Grace: ignoring, Limit: maxHung * int64(r.Concurrency)}
}
