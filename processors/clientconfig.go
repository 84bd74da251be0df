package processors

import (
	"errors"
	"strings"

	"github.com/IBM/sarama"
	"go.uber.org/zap"

	"github.com/turntable-streams/turntable/internal/kafka"
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

// sarama returns the configuration of all Kafka clients.
func (o *options) sarama() *sarama.Config {
	conf := kafka.Config()
	outcome, err := kafka.Apply(conf, o.properties, nil)
	if err != nil {
		o.refuse("properties: %w", err)
	}
	if len(outcome.Ignored) > 0 {
		o.instance.Logger.Warn("properties without effect", zap.Strings("names", outcome.Ignored))
	}
	ofProperties := conf.Net.TLS.Config
	for _, set := range o.secure {
		if err := set(conf); err != nil {
			o.refuse("%w", err)
		}
	}
	warnings := kafka.CleartextWarnings(conf)
	if conf.Net.TLS.Config == ofProperties { // else WithTLS has replaced what the warnings are about
		warnings = append(warnings, outcome.Warnings...)
	}
	for _, warning := range warnings {
		o.instance.Logger.Warn("insecure Kafka connection: " + warning)
	}
	if o.recordBytes > 0 {
		conf.Producer.MaxMessageBytes = o.recordBytes
	}
	if o.instance.InstanceID != "" {
		conf.Consumer.Group.InstanceId = o.instance.InstanceID
	}
	o.instance.InstanceID = conf.Consumer.Group.InstanceId
	if o.guarantee == "" {
		o.guarantee = Guarantee(strings.ToLower(strings.TrimSpace(o.properties[kafka.ProcessingGuarantee])))
	}
	o.instance.Guarantee = guarantees[o.guarantee] // the zero value is at least once
	if err := conf.Validate(); err != nil && len(o.errs) == 0 {
		o.refuse("%w", err)
	}
	return conf
}
