package instance

import (
	"errors"
	"time"

	"github.com/IBM/sarama"
)

// connecting is how often a request is sent again that has overtaken the connection.
const connecting = 5

// askLeader sends a request to the leader of a partition. Sarama's client opens connections in the background: a request of another
// goroutine can reach the broker before the dial has its lock, fails with ErrNotConnected, and is sent again.
func askLeader[R any](client sarama.Client, topic string, partition int32, ask func(*sarama.Broker) (R, error)) (answer R, err error) {
	for try := range connecting {
		var leader *sarama.Broker
		if leader, err = client.Leader(topic, partition); err != nil {
			return answer, err
		}
		if answer, err = ask(leader); !errors.Is(err, sarama.ErrNotConnected) {
			return answer, err
		}
		time.Sleep(time.Millisecond << try)
	}
	return answer, err
}
