package main

import (
	"context"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/delivery"
	"github.com/turntable-streams/turntable/processors/delivery/sink"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// addDeliveries adds the delivery of outputs to the services of ALLOWED_HOST_MAPPING: two groups with the state of
// deliveries, and a sink that sends the requests.
func (p *pipeline) addDeliveries(work *stage) error {
	deliveries, err := delivery.Graph(p.agent, p.delivery)
	if err != nil {
		return err
	}
	routes, err := delivery.RoutesGraph(p.agent, p.delivery)
	if err != nil {
		return err
	}
	// Outputs that chat-api has delivered are not delivered again.
	if err := p.add(deliveries, "deliveries", processors.WithPredecessor(p.chatGroup)); err != nil {
		return err
	}
	if err := p.add(routes, "routes"); err != nil {
		return err
	}
	p.calls = sink.NewHTTP(p.services)
	config := sink.Config{Transports: map[string]sink.Transport{topics.KindHTTP: p.calls}, Config: worker.Config{Logger: p.logger}}
	if p.screen != nil {
		config.Transports[topics.KindWebSocket] = p.screen
	}
	s, err := sink.New(p.agent, p.to, config)
	if err != nil {
		return err
	}
	*work = append(*work, func(ctx context.Context) error { return s.Run(ctx, p.kafka.Brokers, p.kafka.Options...) })
	return nil
}
