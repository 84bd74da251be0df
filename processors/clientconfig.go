package processors

import (
	"errors"

	"github.com/IBM/sarama"
	"go.uber.org/zap"
)

// ClientConfig returns the Sarama configuration and the logger that the options of New result in, for a Kafka client that
// is not part of a group graph: a worker, or a client of the caller's own. Options for tables and topics have no effect. The
// caller owns the configuration. Every error wraps ErrConfig.
func ClientConfig(brokers []string, opts ...Option) (*sarama.Config, *zap.Logger, error) {
	o := newOptions(opts)
	o.checkBrokers(brokers)
	conf := o.sarama()
	return conf, o.instance.Logger, errors.Join(o.errs...)
}
