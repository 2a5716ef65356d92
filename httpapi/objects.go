package httpapi

import (
	"github.com/placet-dev/placet/decision"
	"github.com/placet-dev/placet/job"
)

// JobObject is a job as every door writes it.
func JobObject(j job.Job) Job { return jobObject(j) }

// QuestionObject is a question as every door writes it.
func QuestionObject(d decision.Decision) Question { return questionObject(d) }
