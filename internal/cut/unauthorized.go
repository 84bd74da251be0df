package cut

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"
)

// unauthorized reports whether the broker denied a request. Retrying it helps only after an operator has granted the
// ACL.
func unauthorized(err error) bool {
	for _, denied := range []sarama.KError{
		sarama.ErrTopicAuthorizationFailed, sarama.ErrGroupAuthorizationFailed, sarama.ErrClusterAuthorizationFailed,
		sarama.ErrTransactionalIDAuthorizationFailed,
	} {
		if errors.Is(err, denied) {
			return true
		}
	}
	return false
}

// Errors implements sarama.ConsumerGroup. Sarama retries a denied fetch indefinitely and only reports it here: the
// partition would not be read while the instance reports that it is running. Such an error fails the group.
func (g *Group) Errors() <-chan error {
	inner, out := g.ConsumerGroup.Errors(), make(chan error)
	go func() {
		defer close(out)
		for err := range inner { // closed by Close
			if unauthorized(err) {
				g.Fail(fmt.Errorf("%w: group %s: %w", ErrUnauthorized, g.opts.Name, err))
			}
			select {
			case out <- err:
			case <-g.left: // Goka no longer reads
			}
		}
	}()
	return out
}
