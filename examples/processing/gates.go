package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/lovoo/goka"

	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/approval/policyfile"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/processors/gate/gatehttp"
)

// readPolicy reads the file of GATE_POLICY. The error names the file and the line of each mistake.
func readPolicy() (*approval.Policy, error) {
	policy, err := policyfile.Read(variable("GATE_POLICY"))
	if err != nil {
		return nil, fmt.Errorf("GATE_POLICY: %w", err)
	}
	return &policy, nil
}

// addGates adds the groups of gates to the turn and, to the doors and the WebSocket, the index of gates. The index stops with
// the requests, which may wait for it.
func (p *pipeline) addGates(entrances *stage) error {
	if p.parts.turn {
		if err := p.addGateGroups(); err != nil {
			return err
		}
	}
	if !p.parts.listens() {
		return nil
	}
	index, err := gatehttp.NewIndex(p.agent, gatehttp.Config{Door: p.door()})
	if err != nil {
		return err
	}
	p.gates = index
	*entrances = append(*entrances, func(ctx context.Context) error {
		return index.Run(ctx, p.kafka.Brokers, p.kafka.Options...)
	})
	return nil
}

func (p *pipeline) addGateGroups() error {
	for _, g := range []struct {
		directory string
		graph     func(string, gate.Config) (*goka.GroupGraph, error)
	}{{"gate-grants", gate.GrantsGraph}, {"gates", gate.Graph}} {
		graph, err := g.graph(p.agent, gate.Config{Policy: *p.policy})
		if err != nil {
			return err
		}
		if err := p.add(graph, g.directory); err != nil {
			return err
		}
	}
	return nil
}

// besideGates returns the handler of PORT: the door of gates, and others for all other paths.
func (p *pipeline) besideGates(others http.Handler) (http.Handler, error) {
	gates, err := gatehttp.New(p.gates, p.to, gatehttp.Config{Door: p.door()})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == gatehttp.GatesPath || strings.HasPrefix(r.URL.Path, gatehttp.GatesPath+"/") {
			gates.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	}), nil
}
