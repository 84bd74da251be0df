package main

import (
	"sync"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// answers are the outputs of the agent, by session.
type answers struct {
	catalog topics.Catalog
	mu      sync.Mutex
	waiting map[string]chan string
}

func newAnswers(c topics.Catalog) *answers {
	return &answers{catalog: c, waiting: map[string]chan string{}}
}

// of returns a channel that receives the next answer of a session.
func (a *answers) of(session string) <-chan string {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := make(chan string, 1)
	a.waiting[session] = c
	return c
}

// follower reads the outputs. Ready tells when it has begun.
func (a *answers) follower(brokers []string, opts ...processors.Option) (*processors.Follower, error) {
	return processors.NewFollower(brokers, []string{a.catalog.MessageOutput.Name()}, a.add, opts...)
}

func (a *answers) add(r processors.Inbound) {
	out := a.catalog.MessageOutput.Codec().Unmarshal(r.Value)
	if out.Err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.waiting[string(r.Key)]
	if !ok {
		return
	}
	delete(a.waiting, string(r.Key))
	text := out.Value.Content
	if out.Value.Error != nil {
		text = "error: " + out.Value.Error.Message
	}
	c <- text
}
