package main

import (
	"context"

	"github.com/turntable-streams/turntable/processors/delivery/websocket"
)

// openWebSocket shows the sessions at WS_PORT. Accepting connections stops with the first stage; open connections close
// with the last.
func (p *pipeline) openWebSocket(entrances, shown *stage) error {
	screen, err := websocket.New(p.agent, websocket.WithLogger(p.logger))
	if err != nil {
		return err
	}
	p.screen = screen
	*shown = append(*shown, func(ctx context.Context) error {
		return screen.Run(ctx, p.kafka.Brokers, p.kafka.Options...)
	})
	return p.listen(entrances, "websocket", p.websocket, screen, nil)
}
