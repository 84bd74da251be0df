package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/fold/invoke"
	peertransport "github.com/turntable-streams/turntable/processors/peer/transport"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// assembly is all parts of an agent, connected to brokers.
type assembly struct {
	name    string
	config  *Config
	plan    plan
	brokers []string
	to      processors.Publisher
	kafka   []processors.Option // of all clients

	groups   []*processors.Processor // that of the turn is the first
	workers  []part                  // they wait for the groups, which create the topics
	doors    []part                  // what the doors read
	ready    []<-chan struct{}       // closed when the doors can answer
	mux      *http.ServeMux
	handler  http.Handler // of all doors
	pipeline *invoke.Pipeline
	bridge   *channel.Bridge // nil without Channels
	accounts *channel.Checks // nil without Channels
	closing  []func()
}

// assemble makes the parts. It does not connect. The caller closes the assembly.
func assemble(name string, c *Config, brokers []string, kafka []processors.Option, to processors.Publisher) (*assembly, error) {
	a := &assembly{
		name: name, config: c, brokers: brokers, to: to, mux: http.NewServeMux(), handler: http.NotFoundHandler(),
		kafka: append(kafka[:len(kafka):len(kafka)], processors.WithLogger(c.Logger)),
	}
	var err error
	if a.plan, err = c.plan(name); err != nil {
		return nil, err
	}
	var errs []error
	for _, add := range []struct {
		part Part
		do   func() error
	}{{Groups, a.addGroups}, {Workers, a.addWorkers}, {Senders, a.addSenders}, {Doors, a.addDoors}} {
		if c.Parts.has(add.part) {
			errs = append(errs, add.do())
		}
	}
	if err := errors.Join(errs...); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// close releases what the parts hold when none of them runs.
func (a *assembly) close() {
	for _, c := range a.closing {
		c()
	}
}

func (a *assembly) addGroups() error {
	var errs []error
	for _, g := range a.plan.graphs {
		opts := append(a.kafka[:len(a.kafka):len(a.kafka)], processors.WithTopics(a.plan.catalog))
		if a.config.StateDir != "" {
			directory := strings.ReplaceAll(string(g.Group()), "/", "_")
			opts = append(opts, processors.WithStorage(processors.LevelDB(filepath.Join(a.config.StateDir, directory))))
		}
		p, err := processors.New(a.brokers, g, opts...)
		a.groups, errs = append(a.groups, p), append(errs, err)
	}
	return errors.Join(errs...)
}

func (a *assembly) addSenders() error {
	c := a.config
	transports := map[string]sink.Transport{}
	if c.Deliver != nil {
		calls := sink.NewHTTP(c.Deliver.Services)
		a.closing = append(a.closing, calls.Close)
		transports[topics.KindHTTP] = calls
	}
	if c.Channels != nil {
		posts, err := c.Channels.transport(a.name)
		if err != nil {
			return fmt.Errorf("channels: %w", err)
		}
		transports[topics.KindChannel] = posts
	}
	if len(transports) > 0 {
		s, err := sink.New(a.name, a.to, sink.Config{Transports: transports, Config: worker.Config{Logger: c.Logger}})
		if err != nil {
			return fmt.Errorf("deliveries: %w", err)
		}
		a.workers = append(a.workers, connected(s.Run, a.brokers, a.kafka))
	}
	if c.Peers != nil {
		requests := peertransport.New(c.Peers, peertransport.Config{})
		a.closing = append(a.closing, requests.Close)
		s, err := sink.New(a.name, a.to, sink.Config{
			Peers: true, Transports: map[string]sink.Transport{peertransport.Kind: requests}, Config: worker.Config{Logger: c.Logger},
		})
		if err != nil {
			return fmt.Errorf("peers: %w", err)
		}
		a.workers = append(a.workers, connected(s.Run, a.brokers, a.kafka), func(ctx context.Context) error {
			return requests.Run(ctx, a.name, a.brokers, a.kafka...)
		})
	}
	return nil
}
