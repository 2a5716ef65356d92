package sqlrows

import (
	"time"

	"github.com/placet-dev/placet/decision"
)

// Frequent are statements that a daemon asks again and again, and those of lists, by
// what they find. Backends' tests look at their plans: a store of a million decided
// records has to be as quick as an empty one.
func Frequent() map[string]string {
	amid := decision.QueuePlace{ExpiresAt: time.UnixMicro(1), ID: "apr_1"}
	pageSQL := func(q decision.Queued) string { sql, _ := stretchOf(q).sql(selectDecisions, seenDecision); return sql }
	part := stretchOf(decision.Queued{After: amid, Tool: "t"})
	sizesSQL, _ := part.sql(selectSizes)
	part.until = amid
	pieceSQL, _ := part.sql(selectDecisions, seenDecision)
	decidedSQL, _ := settledDecisionsSQL(decision.Settled{After: decision.SettledPlace{At: time.UnixMicro(1), ID: amid.ID}})
	return map[string]string{
		"overdue decisions":               dueSQL,
		"calls whose lease ended":         leaseEndedSQL,
		"calls to go on with":             continuableSQL,
		"runs to go on with":              continuableRunsSQL,
		"runs without a worker":           adriftSQL,
		"active jobs":                     activeJobsSQL,
		"a principal's jobs":              selectJobs + ` WHERE space = ? AND cleaned_at IS NULL AND principal = ? AND id < ? ORDER BY id DESC LIMIT +?`,
		"jobs to be deleted":              cleanedJobsSQL,
		"how many jobs there are":         countJobsSQL,
		"how many questions wait":         countAskedSQL,
		"how many yeses wait":             countGrantsSQL,
		"keys whose time is over":         oldKeysSQL,
		"who used a run id first":         firstUserSQL,
		"targets of every stream":         globalSQL,
		"targets of one stream":           rootedSQL,
		"whether one hears of one root":   anyRootedSQL,
		"how many hear of all":            countGlobalSQL,
		"how many hear of a stream":       countOfSQL,
		"how many hear of one at most":    countMostSQL,
		"targets":                         selectTargets + ` WHERE space = ? AND removed_at IS NULL AND id < ? ORDER BY id DESC LIMIT +?`,
		"the next of a lane":              makeDueSQL,
		"whether a lane has one":          insertDeliverySQL,
		"the next target with work":       nextTargetSQL,
		"what of a target is due":         dueOfSQL,
		"claims that ended":               claimsEndedSQL,
		"deliveries that are too old":     overagedSQL,
		"what asks for what is settled":   askedSQL,
		"what waits for a removed target": removedSQL,
		"how many deliveries there are":   countDeliveriesSQL,
		"dead letters":                    selectDeliveries + ` WHERE space = ? AND status = ? AND (status = 'dead' OR status = 'dropped') AND id < ? ORDER BY id DESC LIMIT +?`,
		"open deliveries":                 selectOpen + ` WHERE space = ? AND status = ? AND ` + isOpen + ` AND id < ? ORDER BY id DESC LIMIT +?`,
		"a target's deliveries":           selectDeliveries + ` WHERE space = ? AND target_id = ? AND id < ? ORDER BY id DESC LIMIT +?`,
		"a stream's deliveries":           selectDeliveries + ` WHERE space = ? AND seq IN (SELECT event.seq FROM event WHERE event.stream = ?) AND id < ? ORDER BY id DESC LIMIT +?`,
		"attempts":                        deliveryAttemptsSQL,
		"a stream's last events":          inOrderOfSeq.backOfStream + ` ORDER BY stream_seq DESC LIMIT +?`,
		"the last events of all":          inOrderOfSeq.backOfAll + inOrderOfSeq.backOrder,
		"events of deliveries":            inOrderOfSeq.of[16],
		"deliveries that change alike":    `UPDATE delivery SET version = version + 1, status = ?, ended_at = ? WHERE ` + alikeStood[16],
		"a job's attempts to delete":      deleteOfJobSQL[0],
		"a job's deliveries to delete":    deleteOfJobSQL[1],
		"a job's events to delete":        deleteOfJobSQL[2],
		"a job's targets to delete":       deleteOfJobSQL[3],

		"a page of the queue, the first":  pageSQL(decision.Queued{}),
		"a page of the queue, the last":   pageSQL(decision.Queued{Back: true}),
		"a page of the queue, the next":   pageSQL(decision.Queued{After: amid}),
		"a page of the queue, one before": pageSQL(decision.Queued{After: amid, Back: true}),
		"what of the queue is picked":     pageSQL(decision.Queued{After: amid, Type: "t", Owner: "o", Kind: "k", Tool: "t", Before: amid.ExpiresAt}),
		"a page of the queue, a piece":    pieceSQL,
		"sizes in the queue":              sizesSQL,
		"how many of each sort wait":      nextSortSQL,
		"what waits for jobs that go":     queueUnseenSQL,
		"what was approved last":          lastApprovedSQL,
		"what was decided":                decidedSQL,
		"a sign-in":                       signInSQL,
		"a token's sign-ins":              dropSignInsOfSQL,
		"sign-ins that are over":          signInsOverSQL,
	}
}
