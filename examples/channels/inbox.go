package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// errUnexpected is wrapped by the error of a step that did not go as expected.
var errUnexpected = errors.New("this is not what was expected")

// letter is a message that a platform got from the app.
type letter struct {
	place, text string
	// answers is the Message-ID of the mail that it answers.
	answers string
	blocks  []slackBlock
}

// inbox has what all platforms got, in order.
type inbox struct {
	screen  *screen
	mu      sync.Mutex
	letters []letter
	changed chan struct{} // replaced with each letter
}

func newInbox(s *screen) *inbox { return &inbox{screen: s, changed: make(chan struct{})} }

func (i *inbox) add(l letter) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.letters = append(i.letters, l)
	close(i.changed)
	i.changed = make(chan struct{})
	i.screen.line(l.place, "<- %s", strings.Join(strings.Fields(l.text), " "))
}

// await returns the first letter whose text has the fragment, and waits for it.
func (i *inbox) await(ctx context.Context, place, fragment string) (letter, error) {
	for {
		i.mu.Lock()
		letters, changed := i.letters, i.changed
		i.mu.Unlock()
		for _, l := range letters {
			if !strings.Contains(l.text, fragment) {
				continue
			}
			if l.place != place {
				return l, fmt.Errorf("%w: %q was sent to %s, not to %s", errUnexpected, fragment, l.place, place)
			}
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return letter{}, fmt.Errorf("%w: %q was not sent to %s: %w", errUnexpected, fragment, place, context.Cause(ctx))
		}
	}
}

// count returns how many letters have the fragment.
func (i *inbox) count(fragment string) (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range i.letters {
		if strings.Contains(l.text, fragment) {
			n++
		}
	}
	return n
}
