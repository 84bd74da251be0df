package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/turntable-streams/turntable/processors/delivery/websocket"
)

// openWebSocket shows the sessions at WS_PORT. Accepting connections stops with the first stage; open connections close
// with the last.
func (p *pipeline) openWebSocket(entrances, shown *stage) error {
	c := p.audience
	c.Door, c.ResumeKeys = p.door(), p.resumeKeys
	if p.gates != nil {
		c.Gates = p.gates
	}
	screen, err := websocket.New(p.agent, c)
	if err != nil {
		return err
	}
	p.screen = screen
	*shown = append(*shown, func(ctx context.Context) error {
		return screen.Run(ctx, p.kafka.Brokers, p.kafka.Options...)
	})
	return p.listen(entrances, "websocket", p.websocket, p.tls, screen, nil)
}

// resumeKeys returns the keys with which the WebSocket signs event IDs, for one that listens on an address. All processes of
// an agent need the same keys.
func resumeKeys(listens string) (keys [][]byte, err error) {
	const least = 32 // bytes
	for _, name := range []string{"WS_RESUME_KEY", "WS_RESUME_KEY_PREVIOUS"} {
		key := os.Getenv(name)
		switch {
		case key == "":
			continue
		case listens == "":
			return nil, fmt.Errorf("%s is set and WS_PORT is not", name)
		case len(key) < least:
			return nil, fmt.Errorf("%s has %d bytes, want at least %d", name, len(key), least)
		case name != "WS_RESUME_KEY" && len(keys) == 0:
			return nil, errors.New("WS_RESUME_KEY_PREVIOUS is set and WS_RESUME_KEY is not")
		}
		keys = append(keys, []byte(key))
	}
	return keys, nil
}
