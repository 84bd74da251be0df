package instance

import (
	"errors"

	"github.com/IBM/sarama"
)

// consumer makes a consumer that is closed at the end of the run: Goka's views never close theirs, and each restart
// would leak a client for every lookup table.
func (r *run) consumer(brokers []string, conf *sarama.Config) (sarama.Consumer, error) {
	c, err := sarama.NewConsumer(brokers, conf)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.consumers = append(r.consumers, c)
	return c, nil
}

func (r *run) closeConsumers() error {
	r.mu.Lock()
	consumers := r.consumers
	r.consumers = nil
	r.mu.Unlock()
	var errs []error
	for _, c := range consumers {
		errs = append(errs, ignoreClosed(c.Close())) // Goka has closed the processor's own
	}
	return errors.Join(errs...)
}

// closeSender closes the client of the producer, which is closed by now.
func (r *run) closeSender() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sender == nil {
		return nil
	}
	return ignoreClosed(r.sender.Close())
}
