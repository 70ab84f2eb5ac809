// Which weights answer: the revisions of what is loaded, as metrics whose labels tell them.
#pragma once

#include "braid/served_model.h"
#include "net/metrics/family_list.h"

namespace braid::net {

// Nothing for what has none.
void add_revisions(FamilyList& families, const ModelDirectory& models);

}  // namespace braid::net
