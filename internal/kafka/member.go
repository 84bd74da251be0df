package kafka

import (
	"errors"

	"github.com/IBM/sarama"
)

// RemoveMember removes a static member from its group, so that others take its partitions at once: Sarama sends no
// LeaveGroup for one. It connects with conf, and blocks for as long as requests take.
func RemoveMember(brokers []string, conf *sarama.Config, group, instance string) error {
	admin, err := sarama.NewClusterAdmin(brokers, conf)
	if err != nil {
		return err
	}
	_, err = admin.RemoveMemberFromConsumerGroup(group, []string{instance})
	return errors.Join(err, admin.Close())
}
