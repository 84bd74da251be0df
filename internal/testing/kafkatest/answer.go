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
	// answerTimeout bounds one request: a starting node may accept a connection long before it answers.
	answerTimeout = 2 * time.Second
)

// answer returns when the node answers and names all of want, itself among them, as brokers of the cluster. It returns
// an error as soon as the process ends.
func (n *node) answer(ctx context.Context, want []*node) error {
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
		if err = ask(ctx, client, want); err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("kafkatest: node %d ended as it started: %w: %s", n.id, p.err, n.log())
		case <-ctx.Done():
			return fmt.Errorf("kafkatest: node %d does not answer: %w: %w: %s", n.id, ctx.Err(), err, n.log())
		case <-poll.C:
		}
	}
}

// dial uses short timeouts for a node that accepts connections and does not answer, as a paused one does, and does not
// cache metadata between requests.
func dial(addrs ...string) (*kgo.Client, error) {
	return kgo.NewClient(
		kgo.SeedBrokers(addrs...), kgo.DialTimeout(answerTimeout), kgo.RequestTimeoutOverhead(answerTimeout),
		kgo.MetadataMinAge(answerPoll),
	)
}

// ask asks the client's seed broker, and no other, which brokers there are.
func ask(ctx context.Context, client *kgo.Client, want []*node) error {
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
