#pragma once
#define CUB_VERSION 300001 // the specialization dialect
