package recovery

import (
	"errors"
	"fmt"
	"strings"

	"github.com/IBM/sarama"
)

// Fence ends the transactions that former owners of a table partition have left open on it, instead of waiting for their
// timeout: whoever still has one open on the table of a partition that this member was assigned is dead or a zombie.
// Only transactional ids that begin with prefix are touched, and never own. conf makes the configuration of the
// short-lived producer whose initialisation bumps the epoch and aborts. It returns the ids that it fenced.
//
// The brokers must allow Describe on the cluster, and Write and Describe on the transactional ids.
func Fence(client sarama.Client, brokers []string, conf func() *sarama.Config, topic string, partition int32,
	prefix, own string,
) ([]string, error) {
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return nil, fmt.Errorf("recovery: fence: %w", err)
	}
	transactions, ok := admin.(sarama.TransactionClusterAdmin)
	if !ok {
		return nil, errors.New("recovery: fence: this Sarama cannot describe transactions")
	}
	writers, err := transactions.DescribeProducers(map[string][]int32{topic: {partition}})
	if err != nil {
		return nil, fmt.Errorf("recovery: fence: producers of %s/%d: %w", topic, partition, err)
	}
	var open []int64
	for _, p := range writers[topic][partition].ActiveProducers {
		if p.CurrentTxnStartOffset >= 0 {
			open = append(open, p.ProducerID)
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	listed, err := transactions.ListTransactions([]string{"Ongoing"}, open, -1)
	if err != nil {
		return nil, fmt.Errorf("recovery: fence: transactions on %s/%d: %w", topic, partition, err)
	}
	var fenced []string
	var errs []error
	for _, t := range listed {
		if !strings.HasPrefix(t.TransactionalID, prefix) || t.TransactionalID == own {
			continue
		}
		c := conf()
		c.Producer.Transaction.ID = t.TransactionalID
		p, err := sarama.NewAsyncProducer(brokers, c)
		if err == nil {
			err = p.Close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("recovery: fence %s: %w", t.TransactionalID, err))
			continue
		}
		fenced = append(fenced, t.TransactionalID)
	}
	return fenced, errors.Join(errs...)
}
