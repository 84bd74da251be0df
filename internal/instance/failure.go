package instance

import (
	"context"
	"errors"

	"github.com/IBM/sarama"
)

// ended records the offset at which the recovery of a partition ends, or why it cannot begin: Goka converts that error to
// text.
func (r *run) ended(topic string, partition int32, end int64, err error) {
	switch {
	case err == nil:
		r.tables.ended(topic, partition, end)
	case errors.Is(err, context.Canceled):
	case isTable(r.instance.cfg.Graph.JointTables(), topic) && r.instance.health.get().State == Running:
		// Goka continues by itself.
	default:
		r.failed(err)
	}
}

// failed records why the run fails, before Goka converts the error to text. The first error is kept.
func (r *run) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// Sarama may fail the records of a failed transaction with ErrTransactionNotReady before it returns the transaction's
	// own error. That error replaces it.
	if r.cause == nil || errors.Is(r.cause, sarama.ErrTransactionNotReady) && !errors.Is(err, sarama.ErrTransactionNotReady) {
		r.cause = err
	}
}

// broken ends the run because of a failure that no callback waits for.
func (r *run) broken(err error) {
	r.failed(err)
	if g := r.currentGroup(); g != nil {
		g.Fail(err)
	}
}

// failure returns the error that failed has recorded, or nil.
func (r *run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause
}

func ignoreClosed(err error) error {
	if errors.Is(err, sarama.ErrClosedClient) {
		return nil
	}
	return err
}
