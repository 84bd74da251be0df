package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/httpserver"
	"github.com/turntable-streams/turntable/processors/turn/turnhttp"
)

// door is what all doors have in common.
func (p *pipeline) door() auth.Door {
	return auth.Door{Authenticate: p.authenticate, Origins: p.origins, Headers: []string{"Authorization", "Idempotency-Key"}, Logger: p.logger}
}

// openDoors accepts messages, callbacks and, with GATE_POLICY, decisions at PORT. It starts when the turn runs, because the topics may be missing
// earlier, and when the WebSocket runs, so that it shows their effects.
func (p *pipeline) openDoors(entrances *stage) error {
	c := p.chat
	c.Door, c.CallbackServices, c.PathPrefixes, c.FlightDeck = p.door(), p.services.Known, true, true
	doors, err := turnhttp.New(p.agent, p.to, c)
	if err != nil {
		return err
	}
	p.logger.Warn("paths that begin with a door's path are served too, as by chat-api: a proxy must protect them by prefix",
		zap.Strings("paths", []string{turnhttp.ChatPath, turnhttp.ToolResponsePath}))
	handler := http.Handler(doors)
	if p.gates != nil {
		if handler, err = p.besideGates(doors); err != nil {
			return err
		}
	}
	return p.listen(entrances, "doors", p.doors, p.tls, handler, p.runs)
}

// closing is longer than a request waits for the brokers.
const closing = 35 * time.Second

// listen binds an address immediately and serves it in a stage, with TLS if secure is not nil, after begin returns. The
// server closes when its open requests are answered.
func (p *pipeline) listen(
	in *stage, name, addr string, secure *tls.Config, h http.Handler, begin func(context.Context),
) error {
	// More than the 10,000 sockets that the WebSocket accepts. All clients have one address behind a proxy.
	listener, err := httpserver.Listen(addr, httpserver.WithConnectionLimit(16_384), httpserver.WithAddressLimit(12_288))
	if err != nil {
		return err
	}
	p.logger.Info(name, zap.Stringer("addr", listener.Addr()))
	p.listeners = append(p.listeners, listener)
	server := httpserver.New(httpserver.WithTrustedProxies(h, p.proxies...))
	serve := server.Serve
	if secure != nil {
		server.TLSConfig = secure.Clone() // the server changes it
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	*in = append(*in, func(ctx context.Context) error {
		if begin != nil {
			begin(ctx)
		}
		served := make(chan error, 1)
		go func() { served <- serve(listener) }()
		select {
		case err := <-served:
			return fmt.Errorf("%s: %w", name, err)
		case <-ctx.Done():
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		err := server.Shutdown(limited)
		if serving := <-served; !errors.Is(serving, http.ErrServerClosed) {
			err = errors.Join(err, serving)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), server.Close())
		}
		return nil
	})
	return nil
}

// runs blocks until the turn and the WebSocket run, if they do so in this process, or until ctx ends.
func (p *pipeline) runs(ctx context.Context) {
	if len(p.groups) > 0 {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for p.groups[0].Health().State != processors.Running {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}
	if p.screen != nil {
		select {
		case <-p.screen.Ready():
		case <-ctx.Done():
		}
	}
}
