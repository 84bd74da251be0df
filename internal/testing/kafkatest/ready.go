package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	answerLimit = 2 * time.Minute
	answerPoll  = 50 * time.Millisecond
	// answerTimeout is the timeout of a request. A starting node may accept connections long before it responds.
	answerTimeout = 2 * time.Second
)

// waitUntilReady returns when the node responds and lists all of want, including itself, as brokers of the cluster. It
// returns an error as soon as the process ends.
func (n *node) waitUntilReady(ctx context.Context, want []*node) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	client, err := dial(n.port.addr())
	if err != nil {
		return fmt.Errorf("kafkatest: %w", err)
	}
	defer client.Close()

	p := n.current()
	poll := time.NewTicker(answerPoll)
	defer poll.Stop()
	for {
		if err = queryBrokers(ctx, client, want); err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("kafkatest: node %d exited during its start: %w: %s", n.id, p.err, n.log())
		case <-ctx.Done():
			return fmt.Errorf("kafkatest: node %d does not answer: %w: %w: %s", n.id, ctx.Err(), err, n.log())
		case <-poll.C:
		}
	}
}

// dial returns a client with short timeouts, because a paused node accepts connections and does not respond. The client
// does not cache metadata between requests.
func dial(addrs ...string) (*kgo.Client, error) {
	return kgo.NewClient(
		kgo.SeedBrokers(addrs...), kgo.DialTimeout(answerTimeout), kgo.RequestTimeoutOverhead(answerTimeout),
		kgo.MetadataMinAge(answerPoll),
	)
}

// queryBrokers checks that the client's seed broker lists all of want and has an active controller.
func queryBrokers(ctx context.Context, client *kgo.Client, want []*node) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = []kmsg.MetadataRequestTopic{}
	response, err := client.SeedBrokers()[0].Request(ctx, request)
	if err != nil {
		return err
	}
	present := make(map[int32]bool)
	metadata := response.(*kmsg.MetadataResponse)
	for _, b := range metadata.Brokers {
		present[b.NodeID] = true
	}
	for _, n := range want {
		if !present[int32(n.id)] {
			return fmt.Errorf("broker %d has not joined", n.id)
		}
	}
	if metadata.ControllerID < 0 {
		return errors.New("no controller is active")
	}
	return nil
}
