package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/lovoo/goka"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/delivery/websocket"
	"github.com/turntable-streams/turntable/processors/gate/gatehttp"
	"github.com/turntable-streams/turntable/processors/turn"
)

// pipeline holds all parts that run.
type pipeline struct {
	settings
	logger *zap.Logger
	groups []*processors.Processor // the turn's is the first, if it runs in this process
	to     *processors.KafkaPublisher
	screen *websocket.Server // nil where it is off
	calls  *sink.HTTP        // nil where deliveries are off
	gates  *gatehttp.Index   // nil where gates, or all that show them, are off
	stages []stage

	listeners []net.Listener // those of servers that never started are closed here
}

// build creates the parts that the settings enable, and binds the ports. The caller closes the pipeline. After
// an error there is nothing to close.
func build(s settings, logger *zap.Logger) (*pipeline, error) {
	p := &pipeline{settings: s, logger: logger}
	var err error
	if p.to, err = processors.NewPublisher(s.kafka.Brokers, s.kafka.Options...); err != nil {
		return nil, err
	}
	if err := p.build(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *pipeline) build() error {
	var entrances, work, shown stage
	if p.parts.turn {
		if err := p.addTurn(); err != nil {
			return err
		}
	}
	if p.gated {
		if err := p.addGates(&entrances); err != nil {
			return err
		}
	}
	if p.parts.websocket {
		if err := p.openWebSocket(&entrances, &shown); err != nil {
			return fmt.Errorf("WS_PORT: %w", err)
		}
	}
	if p.parts.sink {
		if err := p.addDeliveries(&work); err != nil {
			return err
		}
	}
	for i, g := range p.groups {
		if i == 0 && p.imports {
			work = append(work, p.afterImport(g.Run))
			continue
		}
		work = append(work, g.Run)
	}
	if p.parts.doors {
		if err := p.openDoors(&entrances); err != nil {
			return fmt.Errorf("PORT: %w", err)
		}
	}
	if p.health != "" {
		if err := p.openHealth(&shown); err != nil {
			return fmt.Errorf("HEALTH_ADDR: %w", err)
		}
	}
	// First requests stop, then the groups drain, and the WebSocket shows the last events before it closes.
	p.stages = []stage{entrances, work, shown}
	return nil
}

// addTurn adds the group of the turn, and those of memory, costs and latencies.
func (p *pipeline) addTurn() error {
	graph, err := turn.Graph(p.agent, p.turn)
	if err != nil {
		return err
	}
	if err := p.add(graph, ""); err != nil {
		return err
	}
	for _, a := range p.additions {
		for _, g := range a.groups {
			graph, err := g.graph(p.agent)
			if err != nil {
				return err
			}
			if err := p.add(graph, g.directory); err != nil {
				return err
			}
		}
	}
	return nil
}

// add creates the processor of a group. Each group has its own directory: that of the turn is KAFKA_STATE_DIR, and those
// of the others are below it.
func (p *pipeline) add(graph *goka.GroupGraph, subdirectory string, more ...processors.Option) error {
	options := append(append([]processors.Option{}, p.kafka.Options...), more...)
	options = append(options, processors.WithTopics(p.catalog), processors.WithTick(p.tick),
		processors.WithLogger(p.logger))
	if dir := variable("KAFKA_STATE_DIR"); dir != "" && subdirectory != "" {
		options = append(options, processors.WithStorage(processors.LevelDB(filepath.Join(dir, subdirectory))))
	}
	if p.guarantee != "" {
		options = append(options, processors.WithGuarantee(p.guarantee))
	}
	if id := derivedInstance(); id != "" {
		options = append(options, processors.WithInstance(id))
	}
	group, err := processors.New(p.kafka.Brokers, graph, options...)
	if err != nil {
		return err
	}
	p.groups = append(p.groups, group)
	return nil
}

// close releases resources after all parts have stopped.
func (p *pipeline) close() error {
	for _, l := range p.listeners {
		_ = l.Close() // most are closed
	}
	if p.calls != nil {
		p.calls.Close()
	}
	return p.to.Close()
}

// derivedInstance derives an instance ID from host and state directory, so that a process that keeps its tables is a
// static member: after a kill it continues immediately, whereas a dynamic member waits for the session timeout of its
// former process. The ID is unique because the directory is locked. Without a directory, two processes of a host would
// have the same ID.
func derivedInstance() string {
	dir, err := filepath.Abs(os.Getenv("KAFKA_STATE_DIR"))
	host, unnamed := os.Hostname()
	if err != nil || unnamed != nil || variable("KAFKA_STATE_DIR") == "" || os.Getenv("KAFKA_GROUP_INSTANCE_ID") != "" {
		return ""
	}
	sum := sha256.Sum256([]byte(host + "\x00" + dir))
	return host + "-" + hex.EncodeToString(sum[:4])
}
